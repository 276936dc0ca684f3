//! A seccomp filter: system calls that a sandboxed program does not need are refused.
//!
//! The filter denies by list, because an allow-list breaks programs with every new C library, and refuses every
//! number above the last reviewed one, so that calls of newer kernels are denied until they are reviewed. A
//! refused call fails with `EPERM`, or with `ENOSYS` where programs then fall back to an older call.

use std::io;
use std::mem::offset_of;

use crate::checked;

/// The last system call that was reviewed for this filter: `file_setattr`, Linux 6.17.
const LAST_REVIEWED: u32 = 469;

const SET_MODE_FILTER: libc::c_uint = 1;
const GET_ACTION_AVAILABLE: libc::c_uint = 2;

const RETURN_ALLOW: u32 = 0x7fff_0000;
const RETURN_ERRNO: u32 = 0x0005_0000;
const RETURN_KILL_PROCESS: u32 = 0x8000_0000;

#[cfg(target_arch = "x86_64")]
const NATIVE_ARCH: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const NATIVE_ARCH: u32 = 0xc000_00b7;
/// Numbers from here on are calls of the x32 ABI, which would pass every comparison below.
#[cfg(target_arch = "x86_64")]
const X32_CALLS: u32 = 0x4000_0000;

// Operations of classic BPF; a conditional jump has a distance for true and one for false.
const LOAD: u16 = 0x20;
const AND: u16 = 0x54;
const JUMP_IF_EQUAL: u16 = 0x15;
const JUMP_IF_AT_LEAST: u16 = 0x35;
const JUMP_IF_ANY_BIT: u16 = 0x45;
const RETURN: u16 = 0x06;

const SETUID_OR_SETGID: u32 = 0o6000;
const SOCKET_TYPE: u32 = 0xf;

#[allow(clippy::cast_sign_loss)] // flags and families are small positive ints in C
const NAMESPACE_FLAGS: u32 = (libc::CLONE_NEWNS
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET) as u32;

/// What a program may do beyond computing and working with files.
#[derive(Debug, Clone, Copy, Default)]
#[allow(clippy::struct_excessive_bools)] // independent permissions
pub struct Permissions {
    /// IPv4 and IPv6 sockets.
    pub internet: bool,
    /// Unix sockets with names. Landlock does not restrict connecting to them, so they are permitted only
    /// where a mount namespace hides those of other programs.
    pub unix_sockets: bool,
    /// Tracing and reading the memory of other processes, as debuggers do.
    pub tracing: bool,
    /// Whether the process is in process and IPC namespaces of its own, so that it cannot name other programs'
    /// processes, shared memory and queues.
    pub own_namespaces: bool,
}

/// Calls that are never permitted.
const DENIED: &[libc::c_long] = &[
    // Mounts, roots and namespaces.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    467, // open_tree_attr
    // Files by handle, which pass Landlock's and mounts' boundaries.
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    libc::SYS_fanotify_init,
    libc::SYS_fanotify_mark,
    // Keys of the kernel's key rings.
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    // Large interfaces of the kernel that have had many holes; io_uring passes seccomp filters besides.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    // Other processes' descriptors and pages.
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_process_madvise,
    libc::SYS_migrate_pages,
    libc::SYS_move_pages,
    libc::SYS_memfd_secret,
    // The machine: modules, kernels, swap, time, accounting, names, logs.
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_acct,
    libc::SYS_quotactl,
    443, // quotactl_fd
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_syslog,
    libc::SYS_vhangup,
    libc::SYS_lookup_dcookie,
    libc::SYS_nfsservctl,
    460, // lsm_set_self_attr
    #[cfg(target_arch = "x86_64")]
    libc::SYS_uselib,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_modify_ldt,
];

/// Calls whose arguments lie in memory, where a filter cannot see them; programs fall back to older calls.
const UNSEEN: &[libc::c_long] = &[libc::SYS_clone3, libc::SYS_openat2];

const TRACING: &[libc::c_long] = &[
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
];

/// Objects that other programs of the same user can be reached through.
const SHARED_OBJECTS: &[libc::c_long] = &[
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
];

/// Calls that change a process, and the argument that names it; 0 is the caller.
const PROCESS_ARGUMENTS: &[(libc::c_long, u32)] = &[
    (libc::SYS_prlimit64, 0),
    (libc::SYS_sched_setaffinity, 0),
    (libc::SYS_sched_setscheduler, 0),
    (libc::SYS_sched_setparam, 0),
    (libc::SYS_sched_setattr, 0),
    (libc::SYS_setpriority, 1),
    (libc::SYS_ioprio_set, 1),
];

/// Calls that set a file's mode, and the argument with the mode.
const MODE_ARGUMENTS: &[(libc::c_long, u32)] = &[
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_chmod, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_creat, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_open, 2),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mknod, 1),
    (libc::SYS_fchmod, 1),
    (libc::SYS_fchmodat, 2),
    (452, 2), // fchmodat2
    (libc::SYS_openat, 3),
    (libc::SYS_mknodat, 2),
];

/// Terminal requests that type input into a terminal.
const INJECTING_REQUESTS: [u32; 2] = [0x5412, 0x541c]; // TIOCSTI, TIOCLINUX

/// Execution domains that programs ask for: Linux, 32-bit, both with uname26, and the question which it is.
const PERSONALITIES: [u32; 5] = [0, 8, 0x2_0000, 0x2_0008, u32::MAX];

/// The filter as a BPF program.
#[must_use]
pub fn program(permissions: Permissions) -> Vec<libc::sock_filter> {
    let mut filter = Assembler::new();
    for call in DENIED {
        filter.refuse(*call, libc::EPERM);
    }
    for call in UNSEEN {
        filter.refuse(*call, libc::ENOSYS);
    }
    if !permissions.tracing {
        for call in TRACING {
            filter.refuse(*call, libc::EPERM);
        }
    }
    if !permissions.own_namespaces {
        for call in SHARED_OBJECTS {
            filter.refuse(*call, libc::EPERM);
        }
        for (call, argument) in PROCESS_ARGUMENTS {
            filter.refuse_unless_one_of(*call, *argument, &[0]);
        }
    }
    for (call, argument) in MODE_ARGUMENTS {
        filter.refuse_if_any_bit(*call, *argument, SETUID_OR_SETGID);
    }
    filter.refuse_if_any_bit(libc::SYS_clone, 0, NAMESPACE_FLAGS);
    filter.refuse_unless_one_of(libc::SYS_personality, 0, &PERSONALITIES);
    filter.refuse_if_one_of(libc::SYS_ioctl, 1, &INJECTING_REQUESTS);
    sockets(&mut filter, permissions);
    filter.finish()
}

fn sockets(filter: &mut Assembler, permissions: Permissions) {
    let family = |family: libc::c_int| u32::try_from(family).expect("families are positive");
    let mut families = Vec::new();
    if permissions.unix_sockets {
        families.push(family(libc::AF_UNIX));
    }
    if permissions.internet {
        families.extend([libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK].map(family));
    }
    filter.refuse_unless_one_of(libc::SYS_socket, 0, &families);
    if !permissions.unix_sockets {
        // A pair of datagram sockets can still send to names; a pair of streams cannot.
        let datagram = u32::try_from(libc::SOCK_DGRAM).expect("types are positive");
        filter.refuse_if_masked(libc::SYS_socketpair, 1, SOCKET_TYPE, datagram);
    }
}

/// Install a filter for this thread and everything that it executes. `no_new_privs` must be set.
///
/// # Errors
/// The kernel has no seccomp filters.
pub fn install(permissions: Permissions) -> io::Result<()> {
    let mut filter = program(permissions);
    let length = u16::try_from(filter.len()).expect("the program is shorter than 65,536");
    let program = libc::sock_fprog {
        len: length,
        filter: filter.as_mut_ptr(),
    };
    // SAFETY: `program` points to `len` instructions, which live until the call returns.
    let installed =
        unsafe { libc::syscall(libc::SYS_seccomp, SET_MODE_FILTER, 0, &raw const program) };
    checked(installed).map(drop)
}

/// Whether the kernel has seccomp filters.
#[must_use]
pub fn available() -> bool {
    let action = RETURN_ERRNO;
    // SAFETY: `action` lives until the call returns.
    let result = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            GET_ACTION_AVAILABLE,
            0,
            &raw const action,
        )
    };
    result == 0
}

/// Writes the program. Between two rules the accumulator holds the call's number.
struct Assembler {
    code: Vec<libc::sock_filter>,
}

impl Assembler {
    fn new() -> Self {
        let mut this = Self { code: Vec::new() };
        this.push(LOAD, 0, 0, field(offset_of!(libc::seccomp_data, arch)));
        this.push(JUMP_IF_EQUAL, 1, 0, NATIVE_ARCH);
        this.push(RETURN, 0, 0, RETURN_KILL_PROCESS);
        this.load_number();
        #[cfg(target_arch = "x86_64")]
        this.refuse_from(X32_CALLS);
        this.refuse_from(LAST_REVIEWED + 1);
        this
    }

    fn push(&mut self, code: u16, if_true: u8, if_false: u8, k: u32) {
        self.code.push(libc::sock_filter {
            code,
            jt: if_true,
            jf: if_false,
            k,
        });
    }

    fn load_number(&mut self) {
        self.push(LOAD, 0, 0, field(offset_of!(libc::seccomp_data, nr)));
    }

    /// The low half of an argument: the kernel reads these arguments as 32-bit integers.
    fn load_argument(&mut self, argument: u32) {
        self.push(
            LOAD,
            0,
            0,
            field(offset_of!(libc::seccomp_data, args)) + 8 * argument,
        );
    }

    fn fail(&mut self, errno: i32) {
        self.push(
            RETURN,
            0,
            0,
            RETURN_ERRNO | u32::try_from(errno).expect("errno is positive"),
        );
    }

    fn refuse_from(&mut self, number: u32) {
        self.push(JUMP_IF_AT_LEAST, 0, 1, number);
        self.fail(libc::ENOSYS);
    }

    fn refuse(&mut self, call: libc::c_long, errno: i32) {
        self.push(JUMP_IF_EQUAL, 0, 1, number(call));
        self.fail(errno);
    }

    /// Run `rule` for one call only. It begins with the argument in the accumulator, and falls through to
    /// its end where the call is permitted.
    fn for_call(&mut self, call: libc::c_long, argument: u32, rule: impl FnOnce(&mut Self)) {
        let jump = self.code.len();
        self.push(JUMP_IF_EQUAL, 0, 0, number(call));
        self.load_argument(argument);
        rule(self);
        self.load_number();
        let skipped = self.code.len() - jump - 1;
        self.code[jump].jf = u8::try_from(skipped).expect("a rule is short");
    }

    fn refuse_if_any_bit(&mut self, call: libc::c_long, argument: u32, bits: u32) {
        self.for_call(call, argument, |this| {
            this.push(JUMP_IF_ANY_BIT, 0, 1, bits);
            this.fail(libc::EPERM);
        });
    }

    fn refuse_if_masked(&mut self, call: libc::c_long, argument: u32, mask: u32, value: u32) {
        self.for_call(call, argument, |this| {
            this.push(AND, 0, 0, mask);
            this.push(JUMP_IF_EQUAL, 0, 1, value);
            this.fail(libc::EPERM);
        });
    }

    fn refuse_if_one_of(&mut self, call: libc::c_long, argument: u32, values: &[u32]) {
        self.for_call(call, argument, |this| {
            for value in values {
                this.push(JUMP_IF_EQUAL, 0, 1, *value);
                this.fail(libc::EPERM);
            }
        });
    }

    fn refuse_unless_one_of(&mut self, call: libc::c_long, argument: u32, values: &[u32]) {
        self.for_call(call, argument, |this| {
            for (index, value) in values.iter().enumerate() {
                let past_the_refusal = u8::try_from(values.len() - index).expect("a short list");
                this.push(JUMP_IF_EQUAL, past_the_refusal, 0, *value);
            }
            this.fail(libc::EPERM);
        });
    }

    fn finish(mut self) -> Vec<libc::sock_filter> {
        self.push(RETURN, 0, 0, RETURN_ALLOW);
        self.code
    }
}

fn field(offset: usize) -> u32 {
    u32::try_from(offset).expect("the structure has 64 bytes")
}

fn number(call: libc::c_long) -> u32 {
    u32::try_from(call).expect("call numbers are positive")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the kernel would do with the program: an interpreter of the six operations.
    fn decision(permissions: Permissions, arch: u32, call: u32, args: [u64; 6]) -> u32 {
        let code = program(permissions);
        let word = |offset: usize| match offset {
            0 => call,
            4 => arch,
            _ => {
                let value = args[(offset - 16) / 8];
                if offset.is_multiple_of(8) {
                    value as u32
                } else {
                    (value >> 32) as u32
                }
            }
        };
        let (mut at, mut accumulator) = (0_usize, 0_u32);
        loop {
            let one = code[at];
            let jump = |condition: bool| usize::from(if condition { one.jt } else { one.jf });
            at += 1 + match one.code {
                LOAD => {
                    accumulator = word(one.k as usize);
                    0
                }
                AND => {
                    accumulator &= one.k;
                    0
                }
                JUMP_IF_EQUAL => jump(accumulator == one.k),
                JUMP_IF_AT_LEAST => jump(accumulator >= one.k),
                JUMP_IF_ANY_BIT => jump(accumulator & one.k != 0),
                RETURN => return one.k,
                other => panic!("unknown operation {other:#x}"),
            };
        }
    }

    fn permitted(permissions: Permissions, call: libc::c_long, args: &[u64]) -> bool {
        let mut all = [0; 6];
        all[..args.len()].copy_from_slice(args);
        decision(permissions, NATIVE_ARCH, number(call), all) == RETURN_ALLOW
    }

    const NOTHING: Permissions = Permissions {
        internet: false,
        unix_sockets: false,
        tracing: false,
        own_namespaces: false,
    };
    const EVERYTHING: Permissions = Permissions {
        internet: true,
        unix_sockets: true,
        tracing: true,
        own_namespaces: true,
    };

    #[test]
    fn dangerous_calls_are_refused_whatever_is_permitted() {
        for call in DENIED.iter().chain(UNSEEN) {
            assert!(!permitted(EVERYTHING, *call, &[]), "{call}");
        }
    }

    #[test]
    fn ordinary_calls_pass() {
        for call in [
            libc::SYS_read,
            libc::SYS_mmap,
            libc::SYS_execve,
            libc::SYS_exit_group,
        ] {
            assert!(permitted(NOTHING, call, &[1, 2, 3]), "{call}");
        }
    }

    #[test]
    fn a_process_of_another_architecture_is_killed() {
        assert_eq!(
            decision(NOTHING, 0x4000_0003, 1, [0; 6]),
            RETURN_KILL_PROCESS
        );
    }

    #[test]
    fn calls_that_were_not_reviewed_do_not_exist() {
        let refused = RETURN_ERRNO | 38; // ENOSYS
        assert_eq!(
            decision(EVERYTHING, NATIVE_ARCH, LAST_REVIEWED + 1, [0; 6]),
            refused
        );
        assert_eq!(
            decision(EVERYTHING, NATIVE_ARCH, LAST_REVIEWED, [0; 6]),
            RETURN_ALLOW
        );
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn the_second_call_table_of_x86_64_is_refused() {
        let mount = X32_CALLS | number(libc::SYS_mount);
        assert_eq!(
            decision(EVERYTHING, NATIVE_ARCH, mount, [0; 6]),
            RETURN_ERRNO | 38
        );
    }

    #[test]
    fn socket_families_follow_the_permissions() {
        let unix = Permissions {
            unix_sockets: true,
            ..NOTHING
        };
        let internet = Permissions {
            internet: true,
            ..NOTHING
        };
        let open = |permissions, family: libc::c_int| {
            permitted(
                permissions,
                libc::SYS_socket,
                &[u64::try_from(family).unwrap(), 1],
            )
        };
        for family in [
            libc::AF_UNIX,
            libc::AF_INET,
            libc::AF_INET6,
            libc::AF_VSOCK,
            libc::AF_ALG,
        ] {
            assert!(!open(NOTHING, family), "{family}");
        }
        assert!(open(unix, libc::AF_UNIX) && !open(unix, libc::AF_INET));
        assert!(open(internet, libc::AF_INET) && open(internet, libc::AF_INET6));
        assert!(!open(internet, libc::AF_UNIX) && !open(internet, libc::AF_PACKET));
    }

    #[test]
    fn a_pair_of_sockets_is_a_stream_unless_named_sockets_are_permitted() {
        let pair = |permissions, kind: libc::c_int| {
            let kind = u64::try_from(kind | libc::SOCK_CLOEXEC).unwrap();
            permitted(permissions, libc::SYS_socketpair, &[1, kind])
        };
        assert!(pair(NOTHING, libc::SOCK_STREAM) && !pair(NOTHING, libc::SOCK_DGRAM));
        assert!(pair(EVERYTHING, libc::SOCK_DGRAM));
    }

    #[test]
    fn clone_makes_threads_and_processes_and_no_namespaces() {
        let thread = u64::try_from(libc::CLONE_VM | libc::CLONE_THREAD).unwrap();
        assert!(permitted(NOTHING, libc::SYS_clone, &[thread]));
        assert!(!permitted(
            NOTHING,
            libc::SYS_clone,
            &[u64::try_from(libc::CLONE_NEWUSER).unwrap()]
        ));
    }

    #[test]
    fn high_halves_of_arguments_do_not_hide_a_value() {
        let hidden = (1 << 32) | u64::try_from(libc::CLONE_NEWNS).unwrap();
        assert!(!permitted(NOTHING, libc::SYS_clone, &[hidden]));
        assert!(!permitted(
            NOTHING,
            libc::SYS_ioctl,
            &[0, (7 << 32) | 0x5412]
        ));
    }

    #[test]
    fn files_get_no_setuid_bit() {
        assert!(permitted(NOTHING, libc::SYS_fchmod, &[3, 0o755]));
        assert!(!permitted(NOTHING, libc::SYS_fchmod, &[3, 0o4755]));
        assert!(!permitted(NOTHING, libc::SYS_openat, &[3, 0, 0, 0o2755]));
    }

    #[test]
    fn other_processes_are_changed_only_inside_own_namespaces() {
        assert!(permitted(NOTHING, libc::SYS_prlimit64, &[0, 1]));
        assert!(!permitted(NOTHING, libc::SYS_prlimit64, &[1, 1]));
        assert!(permitted(EVERYTHING, libc::SYS_prlimit64, &[1, 1]));
        assert!(!permitted(NOTHING, libc::SYS_shmget, &[1]));
    }

    #[test]
    fn tracing_needs_its_permission() {
        assert!(!permitted(NOTHING, libc::SYS_ptrace, &[0]));
        assert!(permitted(EVERYTHING, libc::SYS_ptrace, &[0]));
    }

    #[test]
    fn execution_domains_are_the_usual_ones() {
        assert!(permitted(NOTHING, libc::SYS_personality, &[0xffff_ffff]));
        assert!(!permitted(NOTHING, libc::SYS_personality, &[0x004_0000])); // without randomization
    }
}
