//! Landlock: which files the process and its descendants may reach.
//!
//! Rules only allow; everything handled and not allowed is denied, whatever the file modes say. A right that
//! the kernel does not know is left out, so callers check `abi()` for what they rely on: 1 files, 2 moving
//! between folders, 3 truncation, 4 TCP ports, 5 device controls, 6 signals and abstract sockets.

use std::ffi::CString;
use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::checked;

const CREATE_RULESET_VERSION: u32 = 1;
const RULE_PATH_BENEATH: u32 = 1;

const EXECUTE: u64 = 1 << 0;
const WRITE_FILE: u64 = 1 << 1;
const READ_FILE: u64 = 1 << 2;
const READ_DIR: u64 = 1 << 3;
const REMOVE_DIR: u64 = 1 << 4;
const REMOVE_FILE: u64 = 1 << 5;
const MAKE_CHAR: u64 = 1 << 6;
const MAKE_DIR: u64 = 1 << 7;
const MAKE_REG: u64 = 1 << 8;
const MAKE_SOCK: u64 = 1 << 9;
const MAKE_FIFO: u64 = 1 << 10;
const MAKE_BLOCK: u64 = 1 << 11;
const MAKE_SYM: u64 = 1 << 12;
const REFER: u64 = 1 << 13;
const TRUNCATE: u64 = 1 << 14;
const IOCTL_DEV: u64 = 1 << 15;

const BIND_TCP: u64 = 1 << 0;
const CONNECT_TCP: u64 = 1 << 1;

const SCOPE_ABSTRACT_UNIX_SOCKET: u64 = 1 << 0;
const SCOPE_SIGNAL: u64 = 1 << 1;

/// Rights that a rule for a file that is no folder may have.
const FILE_RIGHTS: u64 = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV;
const READ_RIGHTS: u64 = EXECUTE | READ_FILE | READ_DIR;
/// Devices cannot be made, whatever the rules say.
const WRITE_RIGHTS: u64 = READ_RIGHTS
    | WRITE_FILE
    | REMOVE_DIR
    | REMOVE_FILE
    | MAKE_DIR
    | MAKE_REG
    | MAKE_SOCK
    | MAKE_FIFO
    | MAKE_SYM
    | REFER
    | TRUNCATE;

/// `struct landlock_ruleset_attr`, as of ABI 6; older kernels are given a shorter one.
#[repr(C)]
struct RulesetAttributes {
    handled_access_fs: u64,
    handled_access_net: u64,
    scoped: u64,
}

/// `struct landlock_path_beneath_attr`.
#[repr(C, packed)]
struct PathBeneath {
    allowed_access: u64,
    parent_fd: i32,
}

/// What is allowed.
#[derive(Debug, Default)]
pub struct Rules<'a> {
    /// Files and folders that may be read and executed.
    pub readable: Vec<&'a Path>,
    /// Files and folders that may be read, executed, changed and removed.
    pub writable: Vec<&'a Path>,
    /// Whether TCP ports may be bound and connected to.
    pub tcp: bool,
}

/// Rights of ABI 1.
const FIRST_RIGHTS: u64 = (WRITE_RIGHTS & !(REFER | TRUNCATE)) | MAKE_CHAR | MAKE_BLOCK;

/// The version of Landlock's interface; 0 if the kernel has none or it is switched off.
pub fn abi() -> u32 {
    let none = std::ptr::null::<RulesetAttributes>();
    // SAFETY: a null pointer with size 0 and this flag asks for the version.
    let version = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            none,
            0_usize,
            CREATE_RULESET_VERSION,
        )
    };
    u32::try_from(version).unwrap_or(0)
}

/// Rights over files that a kernel of this ABI knows.
fn known_file_rights(abi: u32) -> u64 {
    let mut rights = FIRST_RIGHTS;
    for (since, right) in [(2, REFER), (3, TRUNCATE), (5, IOCTL_DEV)] {
        if abi >= since {
            rights |= right;
        }
    }
    rights
}

/// Restrict the calling thread and everything that it executes. `no_new_privs` must be set.
///
/// Paths that do not exist are left out. Signals and abstract sockets reach only processes under the same
/// restriction, from ABI 6 on.
///
/// # Errors
/// The kernel has no Landlock, or refuses a rule.
pub fn restrict(rules: &Rules<'_>) -> io::Result<()> {
    let abi = abi();
    if abi == 0 {
        return Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "this kernel has no Landlock",
        ));
    }
    let known = known_file_rights(abi);
    let attributes = RulesetAttributes {
        handled_access_fs: known,
        handled_access_net: if abi >= 4 && !rules.tcp {
            BIND_TCP | CONNECT_TCP
        } else {
            0
        },
        scoped: if abi >= 6 {
            SCOPE_ABSTRACT_UNIX_SOCKET | SCOPE_SIGNAL
        } else {
            0
        },
    };
    let size = match abi {
        0..=3 => size_of::<u64>(),
        4 | 5 => 2 * size_of::<u64>(),
        _ => size_of::<RulesetAttributes>(),
    };
    // SAFETY: `attributes` lives until the call returns and is at least `size` long.
    let created = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            &raw const attributes,
            size,
            0,
        )
    };
    let ruleset = owned(checked(created)?);
    for path in &rules.readable {
        allow(&ruleset, path, READ_RIGHTS & known)?;
    }
    for path in &rules.writable {
        allow(&ruleset, path, WRITE_RIGHTS & known)?;
    }
    // SAFETY: the call takes a descriptor, which is open, and flags.
    let restricted =
        unsafe { libc::syscall(libc::SYS_landlock_restrict_self, ruleset.as_raw_fd(), 0) };
    checked(restricted).map(drop)
}

/// Add one rule; nothing is added for a path that does not exist.
fn allow(ruleset: &OwnedFd, path: &Path, rights: u64) -> io::Result<()> {
    let name = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: `name` is a C string that lives until the call returns.
    let opened = unsafe { libc::open(name.as_ptr(), libc::O_PATH | libc::O_CLOEXEC) };
    let file = match checked(libc::c_long::from(opened)) {
        Ok(descriptor) => owned(descriptor),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    let folder = std::fs::File::from(file.try_clone()?).metadata()?.is_dir();
    let rule = PathBeneath {
        allowed_access: if folder { rights } else { rights & FILE_RIGHTS },
        parent_fd: file.as_raw_fd(),
    };
    // SAFETY: `rule` and both descriptors live until the call returns.
    let added = unsafe {
        libc::syscall(
            libc::SYS_landlock_add_rule,
            ruleset.as_raw_fd(),
            RULE_PATH_BENEATH,
            &raw const rule,
            0,
        )
    };
    checked(added).map(drop)
}

fn owned(descriptor: libc::c_long) -> OwnedFd {
    let number = i32::try_from(descriptor).expect("descriptors are ints");
    // SAFETY: the kernel just returned this descriptor; nothing else owns it.
    unsafe { OwnedFd::from_raw_fd(number) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_right_of_the_rules_is_handled_by_the_newest_abi() {
        assert_eq!(WRITE_RIGHTS & !known_file_rights(6), 0);
    }

    #[test]
    fn an_old_kernel_is_asked_for_no_right_that_it_does_not_know() {
        assert_eq!(known_file_rights(1) & (REFER | TRUNCATE | IOCTL_DEV), 0);
        assert_eq!(known_file_rights(2) & (REFER | TRUNCATE), REFER);
    }

    #[test]
    fn devices_can_be_made_by_no_rule() {
        assert_eq!(WRITE_RIGHTS & (MAKE_CHAR | MAKE_BLOCK | IOCTL_DEV), 0);
        assert_ne!(known_file_rights(1) & (MAKE_CHAR | MAKE_BLOCK), 0);
    }
}
