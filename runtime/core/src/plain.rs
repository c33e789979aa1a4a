//! File systems whose files are files.

use std::os::fd::AsFd;

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_own_trees_are_not_plain() {
        let plain = |path: &str| holds_plain_files(fs_err::File::open(path).unwrap()).unwrap();
        assert!(plain(env!("CARGO_MANIFEST_DIR")) && plain(&std::env::temp_dir().display().to_string()));
        assert!(!plain("/proc") && !plain("/proc/self/environ") && !plain("/sys"));
    }
}
