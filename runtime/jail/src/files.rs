//! Which part of the world of files is left.

use std::os::fd::BorrowedFd;

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetError, Scope, make_bitflags,
};

use crate::error::{JailError, Result};
use crate::layers::Layers;

/// What a folder for reading grants.
const READ: BitFlags<AccessFs> = make_bitflags!(AccessFs::{ReadFile | ReadDir});
/// What a folder for writing grants besides: what a guest's files need, and
/// so no devices, sockets, pipes, programs or device controls.
const WRITE: BitFlags<AccessFs> = make_bitflags!(AccessFs::{
    WriteFile | Truncate | MakeReg | MakeDir | MakeSym | RemoveFile | RemoveDir | Refer
});

/// A folder that stays reachable.
#[derive(Debug, Clone, Copy)]
pub struct Folder<'a> {
    /// The folder itself; where its path leads to by now does not matter.
    pub dir: BorrowedFd<'a>,
    /// Whether what is in it may be changed.
    pub writable: bool,
}

/// Leaves these folders and nothing else of the file system, no TCP, and, from
/// ABI 6 on, signals and abstract sockets only among processes shut in alike.
///
/// Descriptors that are open already keep working; a folder's descriptor is no
/// way around the rules. Landlock says nothing about metadata: that a file
/// exists, its size and its times can still be asked for by path, and its
/// times be set by its owner; and what is made in a folder for writing may get
/// any mode.
///
/// # Errors
/// [`JailError::Missing`] where the kernel's Landlock is too old, and
/// [`JailError::Landlock`] when it takes less than was asked for.
pub fn restrict_files(folders: &[Folder<'_>]) -> Result<()> {
    let layers = Layers::probe();
    if let Some(missing) = layers.missing().into_iter().find(|missing| missing.layer == "Landlock") {
        return Err(JailError::Missing { layer: missing.layer, reason: missing.reason });
    }
    let abi = ABI::from(layers.landlock.and_then(|abi| i32::try_from(abi).ok()).unwrap_or_default());
    restrict(folders, abi).map_err(|error| JailError::Landlock(Box::new(error)))
}

fn restrict(folders: &[Folder<'_>], abi: ABI) -> std::result::Result<(), RulesetError> {
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(abi))?
        .handle_access(AccessNet::from_all(abi))?;
    let scopes = Scope::from_all(abi);
    if !scopes.is_empty() {
        rules = rules.scope(scopes)?;
    }
    let mut rules = rules.create()?;
    for folder in folders {
        let access = if folder.writable { READ | WRITE } else { READ };
        rules = rules.add_rule(PathBeneath::new(folder.dir, access))?;
    }
    rules.restrict_self()?;
    Ok(())
}
