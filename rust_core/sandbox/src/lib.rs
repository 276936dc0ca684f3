//! Restricting the calling process on Linux: Landlock, a seccomp filter, namespaces, privileges.
//!
//! Every function acts on the calling thread or process and cannot be undone, so they are meant for a
//! single-threaded process that is about to execute another program. Each is a few system calls; nothing here
//! allocates shared state or starts threads.

#![cfg(target_os = "linux")]

pub mod landlock;
pub mod namespaces;
pub mod privileges;
pub mod seccomp;

use std::io;

/// The result of a system call that returns −1 for an error.
fn checked(result: libc::c_long) -> io::Result<libc::c_long> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}
