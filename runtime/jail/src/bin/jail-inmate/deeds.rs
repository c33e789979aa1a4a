//! What the inmate does besides attacks.

use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixStream};

use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::process::{Resource, getrlimit};

const NEW: OFlags = OFlags::CREATE.union(OFlags::WRONLY).union(OFlags::CLOEXEC);
const MODE: Mode = Mode::RUSR.union(Mode::WUSR).union(Mode::XUSR);

pub(crate) fn perform(deed: &str, folders: &[(OwnedFd, bool)]) -> io::Result<String> {
    let (name, argument) = deed.split_once('=').unwrap_or((deed, ""));
    let folder = |place: usize| folders[place].0.as_fd();
    match name {
        "work" => work(folder(0), folder(1))?,
        "read" => {
            let file = openat(folder(0), argument, OFlags::RDONLY)?;
            let mut bytes = [0; 64];
            let read = rustix::io::pread(&file, &mut bytes, 0)?;
            return Ok(String::from_utf8_lossy(&bytes[..read]).into_owned());
        }
        "list" => {
            let listing = rustix::fs::Dir::new(openat(folder(0), ".", OFlags::RDONLY | OFlags::DIRECTORY)?)?;
            let mut names = Vec::new();
            for entry in listing {
                names.push(entry?.file_name().to_string_lossy().into_owned());
            }
            names.retain(|name| !name.starts_with('.'));
            names.sort();
            return Ok(names.join(" "));
        }
        "write" => drop(openat(folder(0), "file", OFlags::WRONLY)?),
        "truncate" => drop(openat(folder(0), "file", OFlags::WRONLY | OFlags::TRUNC)?),
        "create" => drop(openat(folder(0), "new", NEW)?),
        "mkdir" => rustix::fs::mkdirat(folder(0), "new", MODE)?,
        "symlink" => rustix::fs::symlinkat("file", folder(0), "new")?,
        "unlink" => rustix::fs::unlinkat(folder(0), "file", AtFlags::empty())?,
        "rmdir" => rustix::fs::unlinkat(folder(0), "folder", AtFlags::REMOVEDIR)?,
        "rename" => rustix::fs::renameat(folder(0), "file", folder(0), "new")?,
        "link-over" => rustix::fs::linkat(folder(0), "file", folder(1), "new", AtFlags::empty())?,
        "rename-over" => rustix::fs::renameat(folder(0), "file", folder(1), "new")?,
        "pipe" => rustix::fs::mknodat(folder(0), "new", FileType::Fifo, MODE, 0)?,
        "socket-file" => rustix::fs::mknodat(folder(0), "new", FileType::Socket, MODE, 0)?,
        "execute-here" => {
            use std::os::unix::process::CommandExt;
            #[expect(clippy::disallowed_methods, reason = "what must fail")]
            let mut command = std::process::Command::new(argument);
            return Err(command.exec());
        }
        "abstract-socket" => drop(UnixStream::connect_addr(&SocketAddr::from_abstract_name(argument)?)?),
        "write-much" => {
            let file = openat(folder(0), "new", NEW)?;
            rustix::io::pwrite(&file, &[0; 100], 950)?;
            rustix::io::pwrite(&file, &[0], 1000)?;
        }
        "allocate" => {
            let mut bytes = Vec::<u8>::new();
            let most = 1_usize << 30;
            return Ok(bytes.try_reserve_exact(most).map_or("no room", |()| "room").to_owned());
        }
        "limits" => return Ok(limits()),
        "privileges" => return privileges(),
        "descriptors" => {
            let mut open: Vec<_> = (0..256).filter(|fd| is_open(*fd)).map(|fd| fd.to_string()).collect();
            open.sort();
            return Ok(open.join(" "));
        }
        "threads" => {
            let handles: Vec<_> = (0..4)
                .map(|number| std::thread::Builder::new().name(format!("thread {number}")).spawn(move || number * 2))
                .collect::<io::Result<_>>()?;
            let sum: i32 = handles.into_iter().map(|handle| handle.join().unwrap()).sum();
            return Ok(sum.to_string());
        }
        "wait" => {
            writeln!(io::stdout(), "here")?;
            let mut line = String::new();
            io::stdin().read_line(&mut line)?;
        }
        "start-and-wait" => {
            #[expect(clippy::disallowed_methods, reason = "a process between two")]
            let mut child = std::process::Command::new(std::env::current_exe()?).args([argument, "wait"]).spawn()?;
            child.wait()?;
        }
        "abort" => std::process::abort(),
        other => panic!("no such deed: {other}"),
    }
    Ok("done".to_owned())
}

fn openat(dir: impl AsFd, path: &str, flags: OFlags) -> io::Result<OwnedFd> {
    Ok(rustix::fs::openat(dir, path, flags | OFlags::CLOEXEC, MODE)?)
}

/// All that a guest's files may ask for, in two folders.
fn work(one: impl AsFd, two: impl AsFd) -> io::Result<()> {
    use rustix::fs::{
        Dir, ResolveFlags, StatxFlags, Timespec, Timestamps, fcntl_getfl, fdatasync, fstatfs, fsync, ftruncate, linkat,
        mkdirat, openat2, readlinkat, renameat, statat, statx, symlinkat, unlinkat, utimensat,
    };
    let (one, two) = (one.as_fd(), two.as_fd());
    let within = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    let file = openat2(one, "a", NEW | OFlags::EXCL, MODE, within)?;
    rustix::io::pwrite(&file, b"hello", 0)?;
    let more = [io::IoSlice::new(b" world")];
    rustix::io::pwritev2(&file, &more, 0, rustix::io::ReadWriteFlags::APPEND)?;
    ftruncate(&file, 8)?;
    fsync(&file)?;
    fdatasync(&file)?;
    fcntl_getfl(&file)?;
    mkdirat(one, "folder", MODE | Mode::XUSR)?;
    renameat(one, "a", one, "folder/b")?;
    linkat(one, "folder/b", two, "c", AtFlags::empty())?;
    renameat(two, "c", one, "d")?;
    symlinkat("folder/b", one, "link")?;
    assert_eq!(readlinkat(one, "link", Vec::new())?.as_bytes(), b"folder/b");
    assert_ne!(fstatfs(one)?.f_type, 0);
    // Once as a program asks for it, once as it is remembered.
    assert!(rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime).tv_nsec > 0);
    let time = Timespec { tv_sec: 1_000_000, tv_nsec: 0 };
    utimensat(one, "d", &Timestamps { last_access: time, last_modification: time }, AtFlags::SYMLINK_NOFOLLOW)?;
    assert_eq!(statat(one, "d", AtFlags::SYMLINK_NOFOLLOW)?.st_mtime, 1_000_000);
    assert_eq!(statx(one, "d", AtFlags::empty(), StatxFlags::SIZE)?.stx_size, 8);
    let file = openat2(one, "folder/b", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty(), within)?;
    let mut bytes = [0; 16];
    assert_eq!(rustix::io::pread(&file, &mut bytes, 0)?, 8);
    assert_eq!(&bytes[..8], b"hello wo");
    assert_eq!(
        Dir::new(openat(one, ".", OFlags::RDONLY | OFlags::DIRECTORY)?)?.count(),
        5,
        "two dots, folder, d, link"
    );
    for name in ["d", "link", "folder/b"] {
        unlinkat(one, name, AtFlags::empty())?;
    }
    Ok(unlinkat(one, "folder", AtFlags::REMOVEDIR)?)
}

fn limits() -> String {
    let all = [
        Resource::Data,
        Resource::Cpu,
        Resource::Fsize,
        Resource::Nofile,
        Resource::Nproc,
        Resource::Core,
        Resource::Memlock,
        Resource::Msgqueue,
    ];
    let told = all.map(|resource| {
        let limit = getrlimit(resource);
        format!("{}-{}", limit.current.unwrap_or(u64::MAX), limit.maximum.unwrap_or(u64::MAX))
    });
    told.join(" ")
}

/// Effective, permitted, inheritable, how many are bounding, no new privileges, dumpable.
fn privileges() -> io::Result<String> {
    let sets = rustix::thread::capabilities(None)?;
    let bounding = (0..64)
        .filter(|bit| {
            let one = rustix::thread::CapabilitySet::from_bits_retain(1 << bit);
            rustix::thread::capability_is_in_bounding_set(one).unwrap_or(false)
        })
        .count();
    Ok(format!(
        "{:x} {:x} {:x} {bounding} {} {:?}",
        sets.effective.bits(),
        sets.permitted.bits(),
        sets.inheritable.bits(),
        rustix::thread::no_new_privs()?,
        rustix::process::dumpable_behavior()?,
    ))
}

fn is_open(fd: i32) -> bool {
    #[expect(unsafe_code, reason = "asking about a number that may be no descriptor")]
    // SAFETY: only asked whether it is one.
    let fd = unsafe { std::os::fd::BorrowedFd::borrow_raw(fd) };
    rustix::io::fcntl_getfd(fd).is_ok()
}
