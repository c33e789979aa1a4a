//! The structure of zip files, read strictly.
//!
//! A zip says everything twice, before each entry and in the directory at its
//! end, and programs differ in which they believe. Here both must agree, the
//! directory must lie right before the end, and there must be one end.

use std::io::{Read, Seek, SeekFrom};

use crate::content::is_bomb;
use crate::refusal::Reason;
use crate::{Entry, Fault, Kind, MOST_ENTRIES};

/// The longest directory, in bytes: it is read into memory.
const MOST_DIRECTORY: u64 = 16 << 20;

/// What 32 and 16 bits say where the truth has 64.
const SEE_64: u64 = u32::MAX as u64;
const SEE_64_SHORT: u64 = u16::MAX as u64;

/// The length of the end record, and of the longest comment behind it.
const END: usize = 22;
const MOST_COMMENT: u64 = u16::MAX as u64;

/// The length of what points to the end record of 64 bits.
const LOCATOR: u64 = 20;

/// Lengths of the fixed parts before an entry and in the directory.
const LOCAL: usize = 30;
const CENTRAL: usize = 46;

/// Flags: encrypted in one of the three ways; sizes follow the content.
const ENCRYPTED: u64 = 1 | 1 << 6 | 1 << 13;
const SIZES_FOLLOW: u64 = 1 << 3;

/// Where an entry's content lies.
#[derive(Debug)]
pub(crate) struct Place {
    /// Its first byte.
    pub(crate) start: u64,
    /// How many bytes there are.
    pub(crate) packed: u64,
    /// How many they become.
    pub(crate) size: u64,
    /// Their checksum then.
    pub(crate) crc: u32,
    /// Whether they are packed at all.
    pub(crate) deflated: bool,
}

/// The entries, and where their content lies.
pub(crate) fn index(file: &mut (impl Read + Seek), size: u64) -> Result<(Vec<Entry>, Vec<Place>), Fault> {
    let end = End::find(file, size)?;
    file.seek(SeekFrom::Start(end.offset))?;
    let mut directory = vec![0; end.size as usize];
    file.read_exact(&mut directory)?;
    let (mut entries, mut places, mut starts) = (Vec::new(), Vec::new(), Vec::new());
    let mut rest = directory.as_slice();
    for _ in 0..end.entries {
        let central = Central::take(&mut rest).ok_or_else(|| damaged("an entry of the directory is cut off"))?;
        let (entry, place) = central.entry(file, end.offset)?;
        starts.push(central.local);
        entries.push(entry);
        places.push(place);
    }
    if !rest.is_empty() {
        return Err(damaged("the directory has more in it than the end record counts"));
    }
    refuse_overlaps(&mut entries, &places, &starts);
    Ok((entries, places))
}

fn damaged(why: &str) -> Fault {
    Fault::Damaged(why.to_owned())
}

/// A little-endian number of `N` bytes.
fn number<const N: usize>(bytes: &[u8], at: usize) -> Option<u64> {
    let bytes = bytes.get(at..at + N)?;
    Some(bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

/// What the end of the file says of the directory.
struct End {
    entries: u64,
    size: u64,
    offset: u64,
}

impl End {
    fn find(file: &mut (impl Read + Seek), size: u64) -> Result<Self, Fault> {
        let start = size.saturating_sub(END as u64 + MOST_COMMENT);
        file.seek(SeekFrom::Start(start))?;
        let mut tail = Vec::new();
        file.by_ref().take(size - start).read_to_end(&mut tail)?;
        // The comment must reach the end of the file. Two such records are a
        // zip in the comment of another one: programs differ in which they take.
        let mut ends = (0..tail.len()).filter(|at| {
            tail[*at..].starts_with(b"PK\x05\x06")
                && number::<2>(&tail, at + 20).is_some_and(|comment| at + END + comment as usize == tail.len())
        });
        let at = match (ends.next(), ends.next()) {
            (Some(at), None) => at,
            (None, _) => return Err(damaged("there is no end record; it is cut off, or there is something behind it")),
            (Some(_), Some(_)) => return Err(damaged("there are two end records")),
        };
        let short = |offset: usize| number::<2>(&tail, at + offset).unwrap_or_default();
        let long = |offset: usize| number::<4>(&tail, at + offset).unwrap_or_default();
        if short(4) != 0 && short(4) != SEE_64_SHORT
            || short(6) != 0 && short(6) != SEE_64_SHORT
            || short(8) != short(10)
        {
            return Err(damaged("it is a part of an archive in several files"));
        }
        let said = Self { entries: short(10), size: long(12), offset: long(16) };
        let place = start + at as u64;
        let (end, ends_at) = match said.larger(file, place)? {
            Some(found) => found,
            None if said.entries == SEE_64_SHORT || said.size == SEE_64 || said.offset == SEE_64 => {
                return Err(damaged("the end record of 64 bits is missing"));
            }
            None => (said, place),
        };
        if end.entries > MOST_ENTRIES as u64 || end.size > MOST_DIRECTORY {
            let why = format!("it has {} entries; at most {MOST_ENTRIES} are read", end.entries);
            return Err(Fault::Large(why));
        }
        if end.offset.checked_add(end.size) != Some(ends_at) {
            return Err(damaged("the directory does not lie right before the end record"));
        }
        Ok(end)
    }

    /// The same from the record of 64 bits, where there is one before `place`.
    /// What both say must be the same.
    fn larger(&self, file: &mut (impl Read + Seek), place: u64) -> Result<Option<(Self, u64)>, Fault> {
        let Some(locator_at) = place.checked_sub(LOCATOR) else { return Ok(None) };
        let locator = read(file, locator_at, LOCATOR as usize)?;
        if !locator.starts_with(b"PK\x06\x07") {
            return Ok(None);
        }
        let wrong = || damaged("the end record of 64 bits contradicts the other one");
        let at = number::<8>(&locator, 8).ok_or_else(wrong)?;
        if number::<4>(&locator, 4) != Some(0) || number::<4>(&locator, 16).is_none_or(|disks| disks > 1) {
            return Err(damaged("it is a part of an archive in several files"));
        }
        const RECORD: usize = 56;
        if at.checked_add(RECORD as u64).is_none_or(|end| end > locator_at) {
            return Err(wrong());
        }
        let record = read(file, at, RECORD)?;
        let length = number::<8>(&record, 4).ok_or_else(wrong)?;
        let whole = at.checked_add(12).and_then(|start| start.checked_add(length)) == Some(locator_at);
        let disks = number::<4>(&record, 16) == Some(0) && number::<4>(&record, 20) == Some(0);
        let entries = number::<8>(&record, 32).ok_or_else(wrong)?;
        let size = number::<8>(&record, 40).ok_or_else(wrong)?;
        let offset = number::<8>(&record, 48).ok_or_else(wrong)?;
        let agrees = |said: u64, mark: u64, truth: u64| said == mark || said == truth;
        if !record.starts_with(b"PK\x06\x06")
            || !whole
            || !disks
            || number::<8>(&record, 24) != Some(entries)
            || !agrees(self.entries, SEE_64_SHORT, entries)
            || !agrees(self.size, SEE_64, size)
            || !agrees(self.offset, SEE_64, offset)
        {
            return Err(wrong());
        }
        Ok(Some((Self { entries, size, offset }, at)))
    }
}

fn read(file: &mut (impl Read + Seek), at: u64, length: usize) -> Result<Vec<u8>, Fault> {
    file.seek(SeekFrom::Start(at))?;
    let mut bytes = vec![0; length];
    file.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// An entry as the directory has it.
struct Central<'d> {
    fixed: &'d [u8],
    name: &'d [u8],
    /// Absent where it is not of its form.
    extra: Option<Vec<(u64, &'d [u8])>>,
    packed: u64,
    size: u64,
    local: u64,
}

impl<'d> Central<'d> {
    /// Takes the next one off the directory.
    fn take(rest: &mut &'d [u8]) -> Option<Self> {
        let (fixed, after) = rest.split_at_checked(CENTRAL)?;
        if !fixed.starts_with(b"PK\x01\x02") {
            return None;
        }
        let length = |at| number::<2>(fixed, at).map(|length| length as usize);
        let (name, after) = after.split_at_checked(length(28)?)?;
        let (extra, after) = after.split_at_checked(length(30)?)?;
        let (_comment, after) = after.split_at_checked(length(32)?)?;
        *rest = after;
        let extra = extras(extra);
        let sizes = [(24, number::<4>(fixed, 24)?), (20, number::<4>(fixed, 20)?), (42, number::<4>(fixed, 42)?)];
        let [size, packed, local] = larger(sizes.map(|(_, value)| value), extra.as_deref().unwrap_or_default())?;
        Some(Self { fixed, name, extra, packed, size, local })
    }

    fn short(&self, at: usize) -> u64 {
        number::<2>(self.fixed, at).unwrap_or_default()
    }

    /// The entry, after a look at what stands before its content.
    fn entry(&self, file: &mut (impl Read + Seek), directory: u64) -> Result<(Entry, Place), Fault> {
        const UNIX: u64 = 3;
        let mode = if self.short(4) >> 8 == UNIX { self.short(40) & 0o170_000 } else { 0 };
        let kind = match mode {
            0o120_000 => Kind::Link,
            0o040_000 => Kind::Folder,
            0 | 0o100_000 if self.name.ends_with(b"/") => Kind::Folder,
            0 | 0o100_000 => Kind::File,
            _ => Kind::Special,
        };
        let mut entry = Entry::new(self.name, kind, self.size);
        if kind == Kind::Folder && !self.name.ends_with(b"/") {
            entry.refuse(Reason::Contradiction, "its mode is a folder's and its name is not");
        }
        if self.short(8) & ENCRYPTED != 0 {
            entry.refuse(Reason::Encrypted, "it is encrypted");
        }
        if !matches!(self.short(10), 0 | 8) {
            entry.refuse(Reason::Method, format!("packing method {} is not read", self.short(10)));
        }
        let crc = number::<4>(self.fixed, 16).unwrap_or_default() as u32;
        let mut place = Place { start: 0, packed: self.packed, size: self.size, crc, deflated: self.short(10) == 8 };
        match self.local(file, directory) {
            Ok(start) => place.start = start,
            Err(why) => entry.refuse(Reason::Contradiction, why),
        }
        if !place.deflated && self.packed != self.size {
            entry.refuse(Reason::Contradiction, "it is not packed, and has two sizes");
        }
        if is_bomb(self.size, self.packed) {
            entry.refuse(Reason::Ratio, format!("its {} bytes unpack to {}", self.packed, self.size));
        }
        Ok((entry, place))
    }

    /// Where the content begins: behind a header that says what the directory
    /// says.
    fn local(&self, file: &mut (impl Read + Seek), directory: u64) -> Result<u64, String> {
        const UNICODE_NAME: u64 = 0x7075;
        let Some(own) = &self.extra else { return Err("its extra fields are not of their form".to_owned()) };
        if self.local.checked_add(LOCAL as u64).is_none_or(|end| end > directory) {
            return Err("its header does not lie before the directory".to_owned());
        }
        let unreadable = |_| "its header can't be read".to_owned();
        let fixed = read(file, self.local, LOCAL).map_err(unreadable)?;
        let field = |at: usize| number::<2>(&fixed, at).unwrap_or_default();
        let (name_length, extra_length) = (field(26) as usize, field(28) as usize);
        let rest = read(file, self.local + LOCAL as u64, name_length + extra_length).map_err(unreadable)?;
        let (name, extra) = rest.split_at(name_length);
        if !fixed.starts_with(b"PK\x03\x04") {
            return Err("there is no header where the directory says".to_owned());
        }
        if name != self.name {
            return Err("its header has another name than the directory".to_owned());
        }
        let Some(extra) = extras(extra) else { return Err("its extra fields are not of their form".to_owned()) };
        // A second name, which some programs prefer: five bytes are before it.
        let other = |(id, value): &(u64, &[u8])| *id == UNICODE_NAME && value.get(5..) != Some(self.name);
        if own.iter().chain(&extra).any(other) {
            return Err("it has a second name, which is another one".to_owned());
        }
        if field(6) != self.short(8) || field(8) != self.short(10) {
            return Err("its header has other flags or another method than the directory".to_owned());
        }
        let long = |at: usize| number::<4>(&fixed, at).unwrap_or_default();
        let sizes = larger([long(22), long(18)], &extra).ok_or("its sizes are not of their form")?;
        let [size, packed] = sizes;
        let crc = number::<4>(self.fixed, 16).unwrap_or_default();
        let later = field(6) & SIZES_FOLLOW != 0;
        for (said, truth) in [(long(14), crc), (size, self.size), (packed, self.packed)] {
            if said != truth && !(later && said == 0) {
                return Err("its header has another size or checksum than the directory".to_owned());
            }
        }
        let start = self.local + (LOCAL + name_length + extra_length) as u64;
        if start.checked_add(self.packed).is_none_or(|end| end > directory) {
            return Err("its content does not lie before the directory".to_owned());
        }
        Ok(start)
    }
}

/// The extra fields: a number, a length, a value each.
fn extras(mut bytes: &[u8]) -> Option<Vec<(u64, &[u8])>> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let (id, length) = (number::<2>(bytes, 0)?, number::<2>(bytes, 2)? as usize);
        let (value, rest) = bytes[4..].split_at_checked(length)?;
        fields.push((id, value));
        bytes = rest;
    }
    Some(fields)
}

/// Numbers of 32 bits, each replaced by the next one of 64 where it says so.
fn larger<const N: usize>(mut numbers: [u64; N], extra: &[(u64, &[u8])]) -> Option<[u64; N]> {
    const SIZES: u64 = 1;
    let mut fields = extra.iter().filter(|(id, _)| *id == SIZES);
    let value = fields.next().map_or(&[][..], |(_, value)| value);
    // Two of them are two opinions.
    if fields.next().is_some() {
        return None;
    }
    let mut at = 0;
    for slot in &mut numbers {
        if *slot == SEE_64 {
            *slot = number::<8>(value, at)?;
            at += 8;
        }
    }
    Some(numbers)
}

/// Refuses entries that share bytes: a small archive could hold the same
/// content a million times.
fn refuse_overlaps(entries: &mut [Entry], places: &[Place], starts: &[u64]) {
    let mut order: Vec<usize> = (0..entries.len()).filter(|index| places[*index].start > 0).collect();
    order.sort_by_key(|index| starts[*index]);
    let (mut reached, mut by) = (0, None);
    for index in order {
        let end = places[index].start + places[index].packed;
        if starts[index] < reached {
            for index in by.into_iter().chain([index]) {
                // It says more than that two sizes differ.
                let refusal = crate::Refusal::new(Reason::Overlap, "its bytes are another entry's too");
                entries[index].refused = Some(refusal);
            }
        }
        if end > reached {
            (reached, by) = (end, Some(index));
        }
    }
}
