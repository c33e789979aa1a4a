//! Which walls this kernel can build.

/// The first Landlock ABI that can refuse TCP, and so the oldest that will do.
pub const LANDLOCK_NEEDED: u32 = 4;
/// The first Landlock ABI that keeps signals and abstract sockets inside.
pub const LANDLOCK_SCOPES: u32 = 6;

/// What this kernel offers to shut a process in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layers {
    /// The version of Landlock's interface; `None` where there is none.
    pub landlock: Option<u32>,
    /// Whether system calls can be filtered, and a forbidden one be reported.
    pub seccomp: bool,
}

/// A layer that this host lacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// Which one: `Landlock` or `seccomp`.
    pub layer: &'static str,
    /// What is wrong with it.
    pub reason: String,
    /// What a person can do about it.
    pub remedy: &'static str,
}

impl Layers {
    /// Asks the kernel. Takes two system calls and changes nothing.
    pub fn probe() -> Self {
        Self { landlock: landlock(), seccomp: seccomp() }
    }

    /// The layers without which nothing is shut in; empty where all stand.
    pub fn missing(&self) -> Vec<Missing> {
        let mut missing = Vec::new();
        let landlock = match self.landlock {
            None => Some("this kernel does not offer it to this process".to_owned()),
            Some(abi) if abi < LANDLOCK_NEEDED => {
                Some(format!("this kernel has ABI {abi}, which can't refuse TCP; {LANDLOCK_NEEDED} is needed"))
            }
            Some(_) => None,
        };
        missing.extend(landlock.map(|reason| Missing {
            layer: "Landlock",
            reason,
            remedy: "use Linux 6.7 or newer, name `landlock` in the kernel's `lsm=` list, and in a container let its \
                     seccomp profile pass the `landlock_*` calls",
        }));
        if !self.seccomp {
            missing.push(Missing {
                layer: "seccomp",
                reason: "this kernel can't filter system calls for this process".to_owned(),
                remedy: "use a kernel with CONFIG_SECCOMP_FILTER, and in a container let its profile pass `seccomp`",
            });
        }
        missing
    }

    /// Whether Landlock also keeps signals and abstract sockets inside. Where
    /// it does not, only the filter refuses them.
    pub fn scopes(&self) -> bool {
        self.landlock.is_some_and(|abi| abi >= LANDLOCK_SCOPES)
    }
}

fn landlock() -> Option<u32> {
    // `LANDLOCK_CREATE_RULESET_VERSION`; the libraries keep the answer to themselves.
    const VERSION: libc::c_uint = 1;
    // SAFETY: with this flag the call takes no attributes and makes nothing.
    let abi =
        unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<libc::c_void>(), 0_usize, VERSION) };
    u32::try_from(abi).ok().filter(|abi| *abi > 0)
}

fn seccomp() -> bool {
    let action: u32 = libc::SECCOMP_RET_TRAP;
    // SAFETY: the kernel reads four bytes from `action`, which outlives the call.
    let answer = unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_GET_ACTION_AVAIL, 0, &raw const action) };
    answer == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_without_a_layer_says_which_and_why() {
        for (landlock, seccomp, expected) in [
            (None, true, &["Landlock"][..]),
            (Some(3), true, &["Landlock"]),
            (Some(4), true, &[]),
            (Some(7), false, &["seccomp"]),
            (None, false, &["Landlock", "seccomp"]),
        ] {
            let missing = Layers { landlock, seccomp }.missing();
            let named: Vec<_> = missing.iter().map(|missing| missing.layer).collect();
            assert_eq!(named, expected, "{landlock:?} {seccomp}");
            assert!(missing.iter().all(|missing| !missing.reason.is_empty() && !missing.remedy.is_empty()));
        }
        assert!(Layers { landlock: Some(3), seccomp: true }.missing()[0].reason.contains("ABI 3"));
    }

    #[test]
    fn scopes_come_with_their_abi() {
        let scopes = |abi| Layers { landlock: abi, seccomp: true }.scopes();
        assert_eq!([None, Some(5), Some(6), Some(9)].map(scopes), [false, false, true, true]);
    }
}
