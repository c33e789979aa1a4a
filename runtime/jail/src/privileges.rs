//! What a process may no longer do whatever it asks for.

use rustix::process::{
    DumpableBehavior, Pid, Resource, Rlimit, Signal, geteuid, getppid, set_dumpable_behavior,
    set_parent_process_death_signal, setrlimit,
};
use rustix::thread::{
    CapabilitySet, CapabilitySets, clear_ambient_capability_set, remove_capability_from_bounding_set, set_capabilities,
    set_no_new_privs,
};

use crate::error::{JailError, Result};

/// What the superuser keeps: the two that make files of other owners behave as
/// they do for the caller, inside the folders that [`restrict_files`] leaves.
///
/// Without them the superuser's action could not write into a folder that
/// belongs to the user who is served, which the superuser itself can. Neither
/// opens a way past Landlock, which has no exception for capabilities.
///
/// [`restrict_files`]: crate::restrict_files
const ROOT_KEEPS: CapabilitySet = CapabilitySet::DAC_OVERRIDE.union(CapabilitySet::FOWNER);

/// Has the kernel kill this process as soon as its parent ends.
///
/// The kernel watches the *thread* that started this process, and forgets the
/// wish when the user changes.
///
/// # Errors
/// [`JailError::Orphan`] when the parent ended before it was asked for.
pub fn die_with_parent(parent: Pid) -> Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(JailError::system("follow the parent"))?;
    if getppid() == Some(parent) { Ok(()) } else { Err(JailError::Orphan) }
}

/// Gives up every privilege for good: no program that is executed brings any
/// back, no other process of this user may look into this one, no memory image
/// is left behind, and every capability is gone from all five sets, but for
/// the two of the superuser that concern files (see the source).
///
/// # Errors
/// When the kernel refuses one of the steps. Emptying the bounding set takes a
/// capability; without it nothing could be regained anyway, and the refusal is
/// no error.
pub fn give_up_privileges() -> Result<()> {
    set_no_new_privs(true).map_err(JailError::system("renounce new privileges"))?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(JailError::system("forbid looking inside"))?;
    setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) })
        .map_err(JailError::system("forbid memory images"))?;
    // Before the capability that this takes is gone itself. Numbers that this
    // kernel does not know are refused, too.
    for bit in 0..u64::BITS {
        let _ = remove_capability_from_bounding_set(CapabilitySet::from_bits_retain(1 << bit));
    }
    clear_ambient_capability_set().map_err(JailError::system("empty the ambient capabilities"))?;
    let kept = if geteuid().is_root() { ROOT_KEEPS } else { CapabilitySet::empty() };
    let had = rustix::thread::capabilities(None).map_err(JailError::system("read the capabilities"))?;
    let kept = kept & had.permitted;
    let sets = CapabilitySets { effective: kept, permitted: kept, inheritable: CapabilitySet::empty() };
    set_capabilities(None, sets).map_err(JailError::system("give up capabilities"))
}
