//! Tars, read block by block.
//!
//! A tar says one thing after the other, so nothing is read twice and nothing
//! but a name is held. What follows a header that can't be believed can't
//! either: such an archive is refused as a whole.

use std::io::{self, BufReader, Read, Seek, SeekFrom};

use flate2::bufread::MultiGzDecoder;
use glovebox_guest::Failure;
use tar::{EntryType, Header};

use crate::content::{MOST_TOTAL, is_bomb};
use crate::refusal::Reason;
use crate::{Entry, Fault, Format, Kind, MOST_ENTRIES};

/// The length of a block.
pub(crate) const BLOCK: usize = 512;

/// The longest header that extends another one, in bytes: sixteen times the
/// longest path. Programs write gigabytes there to see what happens.
const MOST_EXTENSION: u64 = 64 << 10;

/// Whether a file begins as a tar does: with a header, or with its end.
pub(crate) fn begins(head: &[u8]) -> bool {
    head.len() == BLOCK && (is_zero(head) || checksum_fits(head))
}

/// The entries.
pub(crate) fn index(file: &mut (impl Read + Seek), size: u64, format: Format) -> Result<Vec<Entry>, Fault> {
    let mut entries = Vec::new();
    let mut none = |_: usize, _: &mut dyn Read| Ok(());
    let mut reader = unpacked(file, size, format)?;
    match Tape::read(&mut reader, Some(&mut entries), &mut none) {
        Ok(()) => Ok(entries),
        Err(Stop::Fault(fault)) => Err(fault),
        Err(Stop::Put(_)) => Ok(entries),
    }
}

/// Goes through the entries once more and hands out the content of each.
pub(crate) fn walk(file: &mut (impl Read + Seek), size: u64, format: Format, meet: Meet<'_>) -> Result<(), Failure> {
    let mut reader = unpacked(file, size, format)?;
    match Tape::read(&mut reader, None, meet) {
        Ok(()) => Ok(()),
        Err(Stop::Fault(fault)) => Err(fault.into()),
        Err(Stop::Put(failure)) => Err(failure),
    }
}

type Meet<'m> = &'m mut dyn FnMut(usize, &mut dyn Read) -> Result<(), Failure>;

/// Why a walk ended early.
enum Stop {
    Fault(Fault),
    Put(Failure),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Fault(error.into())
    }
}

fn damaged(why: impl Into<String>) -> Stop {
    Stop::Fault(Fault::Damaged(why.into()))
}

fn unpacked<'f>(file: &'f mut (impl Read + Seek), size: u64, format: Format) -> Result<Box<dyn Read + 'f>, Fault> {
    file.seek(SeekFrom::Start(0))?;
    if format == Format::Tar {
        return Ok(Box::new(BufReader::new(file)));
    }
    let inner = MultiGzDecoder::new(BufReader::new(file));
    Ok(Box::new(Bounded { inner, packed: size, read: 0 }))
}

/// What comes out of a gzip, up to a limit.
struct Bounded<R> {
    inner: R,
    packed: u64,
    read: u64,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.read += read as u64;
        if is_bomb(self.read, self.packed) {
            return Err(io::Error::other(format!("its {} bytes unpack to {} and more", self.packed, self.read)));
        }
        if self.read > MOST_TOTAL {
            let why = format!("it unpacks to more than {MOST_TOTAL} bytes");
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
        }
        Ok(read)
    }
}

/// What extensions said of the entry that comes next.
#[derive(Default)]
struct Next {
    name: Option<Vec<u8>>,
    target: Option<Vec<u8>>,
    size: Option<u64>,
    sparse: bool,
    /// Which extensions there were.
    had: Vec<u8>,
}

struct Tape<'r, R: ?Sized> {
    reader: &'r mut R,
    next: Next,
}

impl<R: Read + ?Sized> Tape<'_, R> {
    fn read(reader: &mut R, mut entries: Option<&mut Vec<Entry>>, meet: Meet<'_>) -> Result<(), Stop> {
        let mut tape = Tape { reader, next: Next::default() };
        let mut index = 0;
        while let Some(header) = tape.header()? {
            let Some(entry) = tape.entry(&header)? else { continue };
            let size = entry.size;
            if index == MOST_ENTRIES {
                return Err(Stop::Fault(Fault::Large(format!("it has more than {MOST_ENTRIES} entries"))));
            }
            let mut content = (&mut *tape.reader).take(size);
            meet(index, &mut content).map_err(Stop::Put)?;
            let left = content.limit();
            tape.skip(left)?;
            tape.skip(padding(size))?;
            if let Some(entries) = entries.as_deref_mut() {
                entries.push(entry);
            }
            index += 1;
        }
        if !tape.next.had.is_empty() {
            return Err(damaged("it ends where an entry is announced"));
        }
        tape.rest()
    }

    /// The next header; nothing at the end.
    fn header(&mut self) -> Result<Option<Header>, Stop> {
        let mut header = Header::new_old();
        self.reader.read_exact(header.as_mut_bytes())?;
        if is_zero(header.as_bytes()) {
            return Ok(None);
        }
        if !checksum_fits(header.as_bytes()) {
            return Err(damaged("a header has another checksum"));
        }
        Ok(Some(header))
    }

    /// Behind the end there is nothing: some programs would read on.
    fn rest(&mut self) -> Result<(), Stop> {
        let mut chunk = [0; 16 * BLOCK];
        loop {
            match self.reader.read(&mut chunk)? {
                0 => return Ok(()),
                read if is_zero(&chunk[..read]) => {}
                _ => return Err(damaged("there is something behind its end")),
            }
        }
    }

    fn skip(&mut self, bytes: u64) -> Result<(), Stop> {
        let skipped = io::copy(&mut (&mut *self.reader).take(bytes), &mut io::sink())?;
        if skipped < bytes { Err(damaged("it ends too early")) } else { Ok(()) }
    }

    /// The entry of a header; nothing where it extends the next one.
    fn entry(&mut self, header: &Header) -> Result<Option<Entry>, Stop> {
        let size = header.entry_size().map_err(|_| damaged("a header has no size"))?;
        let kind = header.entry_type();
        let byte = kind.as_byte();
        match kind {
            EntryType::GNULongName | EntryType::GNULongLink | EntryType::XHeader | EntryType::XGlobalHeader => {
                let text = self.extension(size)?;
                self.extend(byte, &text)?;
                return Ok(None);
            }
            _ => {}
        }
        let next = std::mem::take(&mut self.next);
        // What is written there differs from program to program.
        if matches!(byte, b'1'..=b'6') && size != 0 {
            return Err(damaged("an entry without content has a size"));
        }
        if next.size.is_some_and(|other| other != size) {
            return Err(damaged("an entry has two sizes"));
        }
        let name = next.name.unwrap_or_else(|| header.path_bytes().into_owned());
        let kind = match kind {
            EntryType::Regular | EntryType::Continuous if name.ends_with(b"/") => Kind::Folder,
            EntryType::Regular | EntryType::Continuous => Kind::File,
            EntryType::Directory => Kind::Folder,
            EntryType::Symlink => Kind::Link,
            EntryType::Link => Kind::HardLink,
            EntryType::GNUSparse => {
                self.sparse_headers(header)?;
                Kind::File
            }
            _ => Kind::Special,
        };
        let mut entry = Entry::new(&name, kind, size);
        if next.sparse || byte == b'S' {
            entry.refuse(Reason::Method, "it is a sparse file");
        }
        if matches!(kind, Kind::Link | Kind::HardLink) {
            let target = next.target.or_else(|| header.link_name_bytes().map(|name| name.into_owned()));
            entry.target = target.map(|target| crate::names::shown(&target));
        }
        Ok(Some(entry))
    }

    /// Further headers of a sparse file, which its size does not count.
    fn sparse_headers(&mut self, header: &Header) -> Result<(), Stop> {
        const MORE: usize = 504;
        let mut more = header.as_gnu().is_some_and(tar::GnuHeader::is_extended);
        while more {
            let mut block = [0; BLOCK];
            self.reader.read_exact(&mut block)?;
            more = block[MORE] == 1;
        }
        Ok(())
    }

    /// The content of a header that extends others.
    fn extension(&mut self, size: u64) -> Result<Vec<u8>, Stop> {
        if size > MOST_EXTENSION {
            return Err(damaged(format!("an extended header has {size} bytes; at most {MOST_EXTENSION} are read")));
        }
        let mut text = Vec::new();
        (&mut *self.reader).take(size).read_to_end(&mut text)?;
        if text.len() as u64 != size {
            return Err(damaged("it ends too early"));
        }
        self.skip(padding(size))?;
        Ok(text)
    }

    fn extend(&mut self, byte: u8, text: &[u8]) -> Result<(), Stop> {
        if byte == b'g' {
            // Of all entries behind it. What says so of a name is no honest archive.
            let told = records(text)?.into_iter().any(|(key, _)| matters(key));
            return if told { Err(damaged("a global header names or measures entries")) } else { Ok(()) };
        }
        // A name can come in two ways; whose is taken differs.
        let twice = self.next.had.contains(&byte) || (byte == b'x') != self.next.had.iter().all(|had| *had == b'x');
        if twice && !self.next.had.is_empty() {
            return Err(damaged("an entry is extended twice"));
        }
        self.next.had.push(byte);
        let until_nul = || text.strip_suffix(b"\0").unwrap_or(text).to_vec();
        match byte {
            b'L' => self.next.name = Some(until_nul()),
            b'K' => self.next.target = Some(until_nul()),
            _ => {
                for (key, value) in records(text)? {
                    match key {
                        b"path" if self.next.name.is_none() => self.next.name = Some(value.to_vec()),
                        b"linkpath" if self.next.target.is_none() => self.next.target = Some(value.to_vec()),
                        b"size" if self.next.size.is_none() => {
                            let digits = std::str::from_utf8(value).ok().and_then(|digits| digits.parse().ok());
                            self.next.size = Some(digits.ok_or_else(|| damaged("an extended size is no number"))?);
                        }
                        b"path" | b"linkpath" | b"size" => {
                            return Err(damaged("an extended header says something twice"));
                        }
                        key if key.starts_with(b"GNU.sparse.") => self.next.sparse = true,
                        _ => {}
                    }
                }
            }
        }
        Ok(())
    }
}

/// Whether a record changes what is extracted.
fn matters(key: &[u8]) -> bool {
    matches!(key, b"path" | b"linkpath" | b"size") || key.starts_with(b"GNU.sparse.")
}

/// A key and its value.
type Record<'t> = (&'t [u8], &'t [u8]);

/// The records of an extended header: `LENGTH KEY=VALUE` and a line feed each.
fn records(mut text: &[u8]) -> Result<Vec<Record<'_>>, Stop> {
    let mut records = Vec::new();
    let wrong = || damaged("an extended header is not of its form");
    while !text.is_empty() {
        let space = text.iter().position(|byte| *byte == b' ').ok_or_else(wrong)?;
        let digits = std::str::from_utf8(&text[..space]).map_err(|_| wrong())?;
        let length: usize = digits.parse().map_err(|_| wrong())?;
        let (record, rest) = text.split_at_checked(length).ok_or_else(wrong)?;
        let record = record.get(space + 1..).and_then(|record| record.strip_suffix(b"\n")).ok_or_else(wrong)?;
        let equals = record.iter().position(|byte| *byte == b'=').ok_or_else(wrong)?;
        records.push((&record[..equals], &record[equals + 1..]));
        text = rest;
    }
    Ok(records)
}

/// What fills up the last block of an entry.
fn padding(size: u64) -> u64 {
    size.next_multiple_of(BLOCK as u64) - size
}

fn is_zero(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| *byte == 0)
}

/// The sum of a header's bytes, its own place taken for spaces.
fn checksum_fits(header: &[u8]) -> bool {
    const PLACE: std::ops::Range<usize> = 148..156;
    let sum: u64 = header
        .iter()
        .enumerate()
        .map(|(at, byte)| if PLACE.contains(&at) { u64::from(b' ') } else { u64::from(*byte) })
        .sum();
    let digits = &header[PLACE];
    let end = digits.iter().position(|byte| *byte == 0).unwrap_or(digits.len());
    let said = std::str::from_utf8(&digits[..end]).ok().and_then(|digits| u64::from_str_radix(digits.trim(), 8).ok());
    said == Some(sum)
}
