//! Files that are files, and file systems that hold such.

use std::fs::File;
use std::io::{self, ErrorKind, Read as _};
use std::os::fd::AsFd;
use std::path::Path;

use fs_err::os::unix::fs::OpenOptionsExt as _;
use rustix::fs::OFlags;
use rustix::io::Errno;

/// The kinds of file system that hold plain files, as the kernel numbers
/// them. The kernel has others (`/proc`, `/sys`, control groups, debugging)
/// whose files are doors to itself and to our own process: a list of what is
/// known to be harmless does not grow stale in the dangerous direction.
const PLAIN: &[u64] = &[
    0xEF53,      // ext2, ext3, ext4
    0x5846_5342, // xfs
    0x9123_683E, // btrfs
    0x0102_1994, // tmpfs
    0x8584_58F6, // ramfs
    0x794C_7630, // overlayfs
    0x6573_5546, // fuse, virtiofs
    0xF2F5_2010, // f2fs
    0x2FC1_2FC1, // zfs
    0xCA45_1A4E, // bcachefs
    0x6969,      // nfs
    0xFF53_4D42, // cifs
    0xFE53_4D42, // smb2
    0x0102_1997, // 9p
    0x00C3_6400, // ceph
    0x0BD0_0BD0, // lustre
    0x0116_1970, // gfs2
    0x7461_636F, // ocfs2
    0x5346_414F, // afs
    0x6B41_4653, // kafs
    0x4D44,      // vfat
    0x2011_BAB0, // exfat
    0x7366_746E, // ntfs3
    0x5346_544E, // ntfs
    0x482B,      // hfs+
    0x3153_464A, // jfs
    0x5265_4973, // reiserfs
    0x1501_3346, // udf
    0x9660,      // iso9660
    0x7371_7368, // squashfs
    0xE0F5_E1E2, // erofs
    0xF15F,      // ecryptfs
    0x6175_6673, // aufs
    0x786F_4256, // vboxsf
];

/// Whether what a descriptor is open on lies in a file system of plain files.
///
/// # Errors
/// The kernel's.
pub fn holds_plain_files(fd: impl AsFd) -> Result<bool, Errno> {
    let kind = rustix::fs::fstatfs(fd)?.f_type;
    // The field's type differs between processors; the numbers have 32 bits.
    #[expect(clippy::cast_sign_loss, clippy::cast_possible_truncation, reason = "the numbers have 32 bits")]
    let kind = u64::from(kind as u32);
    Ok(PLAIN.contains(&kind))
}

/// Opens a regular file for reading. A FIFO would wait for a writer, and
/// opening a device can do something: both are refused without waiting.
///
/// # Errors
/// The kernel's; `InvalidInput` for what is no regular file. They name the path.
pub fn open_plain(path: &Path) -> io::Result<File> {
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
    let file = fs_err::OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(ErrorKind::InvalidInput, format!("`{}` is not a regular file", path.display())));
    }
    Ok(file.into_file())
}

/// Reads a text of bounded length from a regular file.
///
/// # Errors
/// Those of [`open_plain`]; `FileTooLarge`, and `InvalidData` for what is no text.
pub fn read_plain(path: &Path, most: u64) -> io::Result<String> {
    let named = |error: io::Error| io::Error::new(error.kind(), format!("`{}`: {error}", path.display()));
    let mut text = String::new();
    open_plain(path)?.take(most.saturating_add(1)).read_to_string(&mut text).map_err(named)?;
    if text.len() as u64 > most {
        let message = format!("`{}` has more than {most} bytes", path.display());
        return Err(io::Error::new(ErrorKind::FileTooLarge, message));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_own_trees_are_not_plain() {
        let plain = |path: &str| holds_plain_files(fs_err::File::open(path).unwrap()).unwrap();
        assert!(plain(env!("CARGO_MANIFEST_DIR")) && plain(&std::env::temp_dir().display().to_string()));
        assert!(!plain("/proc") && !plain("/proc/self/environ") && !plain("/sys"));
    }

    #[test]
    fn only_regular_files_are_opened_and_nothing_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let (pipe, file) = (folder.path().join("pipe"), folder.path().join("file"));
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        for no in [pipe.as_path(), Path::new("/dev/null"), folder.path()] {
            assert_eq!(read_plain(no, 10).unwrap_err().kind(), ErrorKind::InvalidInput, "{}", no.display());
        }
        fs_err::write(&file, "0123456789").unwrap();
        assert_eq!(read_plain(&file, 10).unwrap(), "0123456789");
        assert_eq!(read_plain(&file, 9).unwrap_err().kind(), ErrorKind::FileTooLarge);
        fs_err::write(&file, [0xFF]).unwrap();
        assert!(read_plain(&file, 9).unwrap_err().to_string().contains("file"));
    }
}
