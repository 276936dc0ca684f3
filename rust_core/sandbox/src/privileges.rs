//! Giving up privileges for good, and becoming the parent of orphans.

use std::io;

use crate::checked;

const CAPABILITY_VERSION_3: u32 = 0x2008_0522;
/// NOROOT, NO_SETUID_FIXUP and NO_CAP_AMBIENT_RAISE, each with its lock.
const SECURE_BITS: libc::c_ulong = 0b1100_1111;

#[repr(C)]
struct CapabilityHeader {
    version: u32,
    pid: i32,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct CapabilitySet {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

fn prctl(option: libc::c_int, argument: libc::c_ulong) -> io::Result<libc::c_long> {
    // SAFETY: these options take integers only.
    checked(libc::c_long::from(unsafe {
        libc::prctl(option, argument, 0, 0, 0)
    }))
}

/// Drop all capabilities and set `no_new_privs`: no program executed from now on gains any, not even for root.
///
/// # Errors
/// The kernel refuses.
pub fn drop_all() -> io::Result<()> {
    prctl(libc::PR_SET_NO_NEW_PRIVS, 1)?;
    // Both fail without CAP_SETPCAP; then there is nothing to drop.
    let _ = prctl(libc::PR_SET_SECUREBITS, SECURE_BITS);
    for capability in 0.. {
        if prctl(libc::PR_CAPBSET_READ, capability).is_err() {
            break; // past the last capability
        }
        let _ = prctl(libc::PR_CAPBSET_DROP, capability);
    }
    let header = CapabilityHeader {
        version: CAPABILITY_VERSION_3,
        pid: 0,
    };
    let none = [CapabilitySet::default(); 2];
    // SAFETY: both structures have the layout of version 3 and live until the call returns.
    checked(unsafe { libc::syscall(libc::SYS_capset, &raw const header, none.as_ptr()) })?;
    Ok(())
}

/// Let orphaned descendants become children of this process instead of the system's init.
///
/// # Errors
/// The kernel refuses.
pub fn become_subreaper() -> io::Result<()> {
    prctl(libc::PR_SET_CHILD_SUBREAPER, 1).map(drop)
}

/// Have a signal sent to this process when the thread that started it ends.
///
/// # Errors
/// There is no such signal.
pub fn signal_when_parent_ends(signal: u32) -> io::Result<()> {
    prctl(libc::PR_SET_PDEATHSIG, libc::c_ulong::from(signal)).map(drop)
}

/// Keep other processes of the same user from reading this one's memory and environment, until it executes
/// another program.
///
/// # Errors
/// The kernel refuses.
pub fn hide_memory() -> io::Result<()> {
    prctl(libc::PR_SET_DUMPABLE, 0).map(drop)
}
