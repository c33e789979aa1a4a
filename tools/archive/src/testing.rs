//! Archives byte by byte: libraries don't write what is tested here.

use std::io::{Cursor, Write as _};

use flate2::write::{DeflateEncoder, GzEncoder};
use flate2::{Compression, Crc};

use crate::{Archive, Fault};

/// Opens an archive in memory.
pub(crate) fn archive(bytes: Vec<u8>) -> Result<Archive<Cursor<Vec<u8>>>, Fault> {
    let size = bytes.len() as u64;
    Archive::new(Cursor::new(bytes), size)
}

/// What comes out, and the reasons for what does not, both by name.
pub(crate) type Extracted = (Vec<(String, Vec<u8>)>, Vec<(String, String)>);

/// Opens it, checks and extracts all of it.
pub(crate) fn extracted(bytes: Vec<u8>) -> Result<Extracted, Fault> {
    let mut archive = archive(bytes)?;
    let all: Vec<usize> = (0..archive.entries().len()).collect();
    archive.verify(&all)?;
    let refused = archive.entries().iter().filter_map(|entry| {
        let refusal = entry.refused.as_ref()?;
        let reason = glovebox_guest::json!(refusal.reason);
        Some((entry.name.clone(), reason.as_str().unwrap_or_default().to_owned()))
    });
    let refused = refused.collect();
    let mut files = Vec::new();
    archive
        .extract(&all, |entry, content| {
            let mut bytes = Vec::new();
            content.read_to_end(&mut bytes).unwrap();
            files.push((entry.path.clone().unwrap(), bytes));
            Ok(())
        })
        .unwrap();
    Ok((files, refused))
}

/// One entry of a zip: what stands before its content, and in the directory.
#[derive(Clone)]
pub(crate) struct Item {
    pub(crate) name: Vec<u8>,
    pub(crate) local_name: Vec<u8>,
    /// As it lies in the file.
    pub(crate) packed: Vec<u8>,
    pub(crate) size: u32,
    pub(crate) local_size: u32,
    pub(crate) packed_size: u32,
    pub(crate) crc: u32,
    pub(crate) method: u16,
    pub(crate) flags: u16,
    pub(crate) mode: u32,
    pub(crate) extra: Vec<u8>,
    pub(crate) local_extra: Vec<u8>,
    /// Where the directory says it lies, in place of where it does.
    pub(crate) at: Option<u32>,
}

impl Item {
    /// A file that is not packed.
    pub(crate) fn stored(name: &str, content: &[u8]) -> Self {
        let mut crc = Crc::new();
        crc.update(content);
        let size = content.len() as u32;
        Self {
            name: name.into(),
            local_name: name.into(),
            packed: content.to_vec(),
            size,
            local_size: size,
            packed_size: size,
            crc: crc.sum(),
            method: 0,
            flags: 0,
            mode: 0o100_644,
            extra: Vec::new(),
            local_extra: Vec::new(),
            at: None,
        }
    }

    /// A packed file.
    pub(crate) fn deflated(name: &str, content: &[u8]) -> Self {
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(content).unwrap();
        let packed = encoder.finish().unwrap();
        Self { packed_size: packed.len() as u32, packed, method: 8, ..Self::stored(name, content) }
    }

    fn shared(&self, size: u32, name: &[u8], extra: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for short in [20, self.flags, self.method, 0, 0x21] {
            bytes.extend(short.to_le_bytes());
        }
        for long in [self.crc, self.packed_size, size] {
            bytes.extend(long.to_le_bytes());
        }
        bytes.extend((name.len() as u16).to_le_bytes());
        bytes.extend((extra.len() as u16).to_le_bytes());
        bytes
    }
}

/// The end of a zip, as it is or as it is made out to be.
#[derive(Default, Clone)]
pub(crate) struct Ending {
    pub(crate) entries: Option<u16>,
    pub(crate) offset: Option<u32>,
    pub(crate) size: Option<u32>,
    pub(crate) comment: Vec<u8>,
    /// A record of 64 bits before it: entries, size, offset added to the truth.
    pub(crate) large: Option<[i64; 3]>,
}

/// A zip.
pub(crate) fn zip(items: &[Item]) -> Vec<u8> {
    zip_with(items, &Ending::default())
}

/// A zip with another end.
pub(crate) fn zip_with(items: &[Item], ending: &Ending) -> Vec<u8> {
    let (mut bytes, mut directory) = (Vec::new(), Vec::new());
    for item in items {
        let at = item.at.unwrap_or(bytes.len() as u32);
        bytes.extend(b"PK\x03\x04");
        bytes.extend(item.shared(item.local_size, &item.local_name, &item.local_extra));
        bytes.extend(&item.local_name);
        bytes.extend(&item.local_extra);
        bytes.extend(&item.packed);
        directory.extend(b"PK\x01\x02");
        // Made on Unix, so that the mode counts.
        directory.extend((3u16 << 8 | 20).to_le_bytes());
        directory.extend(item.shared(item.size, &item.name, &item.extra));
        directory.extend([0; 6]);
        directory.extend((item.mode << 16).to_le_bytes());
        directory.extend(at.to_le_bytes());
        directory.extend(&item.name);
        directory.extend(&item.extra);
    }
    let (offset, size, count) = (bytes.len(), directory.len(), items.len());
    bytes.extend(directory);
    if let Some([entries, length, start]) = ending.large {
        let at = bytes.len() as u64;
        bytes.extend(b"PK\x06\x06");
        bytes.extend(44u64.to_le_bytes());
        bytes.extend([45, 0, 45, 0]);
        bytes.extend([0; 8]);
        for number in [count as i64 + entries, count as i64 + entries, size as i64 + length, offset as i64 + start] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.extend(b"PK\x06\x07");
        bytes.extend(0u32.to_le_bytes());
        bytes.extend(at.to_le_bytes());
        bytes.extend(1u32.to_le_bytes());
    }
    bytes.extend(b"PK\x05\x06");
    bytes.extend([0; 4]);
    let entries = ending.entries.unwrap_or(count as u16);
    bytes.extend(entries.to_le_bytes());
    bytes.extend(entries.to_le_bytes());
    bytes.extend(ending.size.unwrap_or(size as u32).to_le_bytes());
    bytes.extend(ending.offset.unwrap_or(offset as u32).to_le_bytes());
    bytes.extend((ending.comment.len() as u16).to_le_bytes());
    bytes.extend(&ending.comment);
    bytes
}

/// One entry of a tar.
pub(crate) fn tape(name: &str, kind: u8, content: &[u8]) -> Vec<u8> {
    tape_sized(name.as_bytes(), kind, content, content.len() as u64)
}

/// One entry of a tar with any size.
pub(crate) fn tape_sized(name: &[u8], kind: u8, content: &[u8], size: u64) -> Vec<u8> {
    let mut header = [0; 512];
    header[..name.len()].copy_from_slice(name);
    header[100..108].copy_from_slice(b"0000644\0");
    header[124..136].copy_from_slice(format!("{size:011o}\0").as_bytes());
    header[156] = kind;
    header[257..265].copy_from_slice(b"ustar\x0000");
    if matches!(kind, b'1' | b'2') {
        header[157..163].copy_from_slice(b"target");
    }
    with_checksum(header, content)
}

/// A header and its content, with the header's checksum.
pub(crate) fn with_checksum(mut header: [u8; 512], content: &[u8]) -> Vec<u8> {
    header[148..156].copy_from_slice(b"        ");
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    let mut bytes = header.to_vec();
    bytes.extend(content);
    bytes.resize(bytes.len().next_multiple_of(512), 0);
    bytes
}

/// A record of an extended header.
pub(crate) fn record(key: &str, value: &str) -> Vec<u8> {
    let rest = format!(" {key}={value}\n");
    let length = (1..).find(|length: &usize| length.to_string().len() + rest.len() == *length).unwrap();
    format!("{length}{rest}").into_bytes()
}

/// A tar of such entries, with its end.
pub(crate) fn tar(entries: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = entries.concat();
    bytes.extend([0; 1024]);
    bytes
}

/// The same packed.
pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}
