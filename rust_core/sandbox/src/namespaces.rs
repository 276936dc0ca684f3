//! Namespaces without privileges: own processes, mounts, network, host name and System V objects.

use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::checked;

/// Enter new namespaces as the same user and group. Children started afterwards are in the process
/// namespace; the first of them is its init, and all end with it.
///
/// # Errors
/// The kernel, a container or a security module does not permit user namespaces.
pub fn enter(own_network: bool) -> io::Result<()> {
    // SAFETY: these calls have no arguments and no memory effects.
    let (user, group) = unsafe { (libc::geteuid(), libc::getegid()) };
    let mut flags = libc::CLONE_NEWUSER
        | libc::CLONE_NEWNS
        | libc::CLONE_NEWPID
        | libc::CLONE_NEWIPC
        | libc::CLONE_NEWUTS;
    if own_network {
        flags |= libc::CLONE_NEWNET;
    }
    // SAFETY: takes flags only.
    checked(libc::c_long::from(unsafe { libc::unshare(flags) }))?;
    std::fs::write("/proc/self/setgroups", "deny")?;
    std::fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
    std::fs::write("/proc/self/gid_map", format!("{group} {group} 1"))?;
    let root = Path::new("/");
    // Nothing mounted from now on shows outside.
    mount(None, root, None, libc::MS_REC | libc::MS_PRIVATE)
}

/// Mount a fresh `/proc`, in which only this process namespace shows. Call in the namespace's init.
///
/// # Errors
/// The kernel refuses, as it does where parts of `/proc` are hidden.
pub fn mount_proc() -> io::Result<()> {
    let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
    mount(
        Some(Path::new("proc")),
        Path::new("/proc"),
        Some("proc"),
        flags,
    )
}

/// Show `source` at `target`, read-only or not.
///
/// # Errors
/// A path does not exist, or the kernel refuses.
pub fn bind(source: &Path, target: &Path, read_only: bool) -> io::Result<()> {
    mount(Some(source), target, None, libc::MS_BIND | libc::MS_REC)?;
    if !read_only {
        return Ok(());
    }
    // A mount that an outer namespace restricted keeps those restrictions, so they have to be named again.
    let kept = restrictions_of(target)?;
    mount(
        None,
        target,
        None,
        libc::MS_BIND | libc::MS_REMOUNT | libc::MS_RDONLY | kept,
    )
}

/// The mount flags of the file system at a path, as far as a bind mount must keep them.
fn restrictions_of(path: &Path) -> io::Result<libc::c_ulong> {
    let name = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: all-zero bytes are a valid `statvfs`.
    let mut found: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: `name` is a C string and `found` is writable; both live until the call returns.
    let result = unsafe { libc::statvfs(name.as_ptr(), &raw mut found) };
    checked(libc::c_long::from(result))?;
    let pairs = [
        (libc::ST_NOSUID, libc::MS_NOSUID),
        (libc::ST_NODEV, libc::MS_NODEV),
        (libc::ST_NOEXEC, libc::MS_NOEXEC),
        (libc::ST_NOATIME, libc::MS_NOATIME),
        (libc::ST_NODIRATIME, libc::MS_NODIRATIME),
        (libc::ST_RELATIME, libc::MS_RELATIME),
    ];
    Ok(pairs
        .iter()
        .filter(|(has, _)| found.f_flag & has != 0)
        .fold(0, |all, (_, flag)| all | flag))
}

fn mount(
    source: Option<&Path>,
    target: &Path,
    kind: Option<&str>,
    flags: libc::c_ulong,
) -> io::Result<()> {
    let source = source
        .map(|path| CString::new(path.as_os_str().as_bytes()))
        .transpose()?;
    let target = CString::new(target.as_os_str().as_bytes())?;
    let kind = kind.map(CString::new).transpose()?;
    let pointer =
        |text: &Option<CString>| text.as_ref().map_or(std::ptr::null(), |text| text.as_ptr());
    // SAFETY: every pointer is null or a C string that lives until the call returns; there is no data.
    let mounted = unsafe {
        libc::mount(
            pointer(&source),
            target.as_ptr(),
            pointer(&kind),
            flags,
            std::ptr::null(),
        )
    };
    checked(libc::c_long::from(mounted)).map(drop)
}
