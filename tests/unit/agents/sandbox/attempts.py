"""Attempts to leave a sandbox, run inside it as `python -I -S -c SOURCE JSON`; prints outcomes as JSON.

An attempt that succeeds returns something true. Refusals are exceptions, or an empty result.
"""

import ctypes
import errno
import json
import mmap
import os
import signal
import socket
import struct
import subprocess
import sys
import threading

GIVEN = json.loads(sys.argv[1])
ROOT, SECRET, OUTSIDE = GIVEN["root"], GIVEN["secret"], GIVEN["outside"]
WORK = f"{ROOT}/src"
FOREIGN = GIVEN["foreign_pid"]
LIBC = ctypes.CDLL(None, use_errno=True)
X86 = os.uname().machine == "x86_64"


def read(path):
    with open(path, "rb") as file:
        return file.read().decode("utf-8", "replace")


def write(path, text="changed"):
    with open(path, "w") as file:
        file.write(text)
    return True


def call(x86, arm, *arguments):
    """A system call by its number; raises what it fails with."""
    if LIBC.syscall(x86 if X86 else arm, *arguments) < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return True


# Files.


def read_shadow():
    return read("/etc/shadow")


def read_secret():
    return read(SECRET)


def read_secret_by_relative_path():
    os.chdir(ROOT)
    return read(os.path.relpath(SECRET, ROOT))


def read_secret_through_a_link():
    os.symlink(SECRET, f"{WORK}/link")
    return read(f"{WORK}/link")


def read_secret_through_a_linked_folder():
    os.symlink(OUTSIDE, f"{WORK}/linked")
    return read(f"{WORK}/linked/{os.path.basename(SECRET)}")


def read_secret_through_a_hard_link():
    os.link(SECRET, f"{WORK}/hard")
    return read(f"{WORK}/hard")


def read_secret_through_proc():
    return read(f"/proc/self/root{SECRET}")


def read_secret_through_the_parent():
    return read(f"/proc/{os.getppid()}/root{SECRET}")


def list_outside():
    return os.listdir(OUTSIDE)


def write_outside():
    return write(f"{OUTSIDE}/new")


def write_outside_through_a_link():
    os.symlink(f"{OUTSIDE}/new", f"{WORK}/dangling")
    return write(f"{WORK}/dangling")


def overwrite_secret():
    return write(SECRET)


def truncate_secret():
    os.truncate(SECRET, 0)
    return True


def remove_secret():
    os.remove(SECRET)
    return True


def move_secret_in():
    os.rename(SECRET, f"{WORK}/moved")
    return True


def move_file_out():
    write(f"{WORK}/mine")
    os.rename(f"{WORK}/mine", f"{OUTSIDE}/mine")
    return True


def write_git_configuration():
    return write(f"{ROOT}/.git/config")


def replace_git_folder():
    os.rename(f"{ROOT}/.git", f"{ROOT}/.git.old")
    return True


def read_home():
    os.listdir(GIVEN["home"])
    return True


def read_kernel_memory():
    return read("/dev/kmsg")


def write_kernel_setting():
    return write("/proc/sys/kernel/core_pattern", "|/bin/false")


def write_control_group():
    os.mkdir(
        "/sys/fs/cgroup/pids/escaped"
        if os.path.isdir("/sys/fs/cgroup/pids")
        else "/sys/fs/cgroup/escaped"
    )
    return True


def make_device():
    os.mknod(f"{WORK}/disk", 0o600 | 0o060000, os.makedev(8, 0))
    return True


# Network and sockets.


def connect_to_loopback():
    with socket.socket() as one:
        one.settimeout(2)
        one.connect(("127.0.0.1", GIVEN["port"]))
    return True


def connect_to_loopback_6():
    with socket.socket(socket.AF_INET6) as one:
        one.settimeout(2)
        one.connect(("::1", GIVEN["port"]))
    return True


def send_datagram():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.connect(("192.0.2.1", 53))
        one.send(b"x")
    return True


def resolve_name():
    return socket.getaddrinfo("example.com", 80)


def connect_to_unix_socket():
    with socket.socket(socket.AF_UNIX) as one:
        one.connect(GIVEN["unix"])
    return True


def connect_to_abstract_socket():
    with socket.socket(socket.AF_UNIX) as one:
        one.connect("\0" + GIVEN["abstract"])
    return True


def send_to_unix_socket_from_a_pair():
    one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    with one, other:
        one.sendto(b"x", GIVEN["unix_datagram"])
    return True


def open_packet_socket():
    socket.socket(socket.AF_PACKET, socket.SOCK_RAW).close()
    return True


def open_vsock():
    socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM).close()
    return True


# Other processes.


def signal_foreign_process():
    os.kill(FOREIGN, signal.SIGCONT)
    return True


def trace_foreign_process():
    return call(101, 117, 16, FOREIGN, 0, 0)  # ptrace(PTRACE_ATTACH)


def trace_supervisor():
    return call(101, 117, 16, os.getppid(), 0, 0)


def read_foreign_memory():
    return call(310, 270, FOREIGN, 0, 0, 0, 0, 0)  # process_vm_readv


def read_foreign_environment():
    return read(f"/proc/{FOREIGN}/environ")


def read_parents_environment():
    return "SECRET" in read(f"/proc/{os.getppid()}/environ")


def read_any_environment():
    for name in os.listdir("/proc"):
        try:
            if name.isdigit() and GIVEN["word"] in read(f"/proc/{name}/environ"):
                return True
        except OSError:
            continue
    return False


def limit_foreign_process():
    import resource

    resource.prlimit(FOREIGN, resource.RLIMIT_CORE)
    return True


def renice_foreign_process():
    os.setpriority(os.PRIO_PROCESS, FOREIGN, 19)
    return True


def find_secret_in_environment():
    return any(GIVEN["word"] in value for value in os.environ.values())


def find_inherited_descriptors():
    open_now = set()
    for number in range(3, 256):
        try:
            os.fstat(number)
        except OSError:
            continue
        open_now.add(number)
    return sorted(open_now)


def read_callers_input():
    return sys.stdin.buffer.read()


# Privileges and the kernel.


def become_root():
    os.setuid(0 if os.getuid() else 12_345)
    return True


def have_capabilities():
    status = dict(line.split(":\t", 1) for line in read("/proc/self/status").splitlines())
    return int(status["CapEff"], 16) or int(status["CapPrm"], 16) or status["NoNewPrivs"] != "1"


def make_setuid_file():
    write(f"{WORK}/tool")
    os.chmod(f"{WORK}/tool", 0o4755)
    return True


def create_setuid_file():
    os.close(os.open(f"{WORK}/tool2", os.O_CREAT | os.O_WRONLY, 0o4755))
    return os.stat(f"{WORK}/tool2").st_mode & 0o4000


def mount_file_system():
    return call(165, 40, b"none", WORK.encode(), b"tmpfs", 0, 0)


def unmount_proc():
    return call(166, 39, b"/proc", 2)


def open_mount_tree():
    return call(428, 428, -100, b"/", 1)


def make_file_system_context():
    return call(430, 430, b"tmpfs", 0)


def unshare_user_namespace():
    return call(272, 97, 0x10000000)


def clone_user_namespace():
    pid = LIBC.syscall(56 if X86 else 220, 0x10000000 | signal.SIGCHLD, 0, 0, 0, 0)
    if pid == 0:
        os._exit(0)
    if pid < 0:
        raise OSError(ctypes.get_errno(), "clone")
    os.waitpid(pid, 0)
    return True


def join_namespace():
    namespace = os.open(f"/proc/{os.getppid()}/ns/user", os.O_RDONLY)
    return call(308, 268, namespace, 0)


def change_root():
    os.chroot(ROOT)
    return True


def use_key_ring():
    return call(250, 219, 0, -3, 0, 0, 0)  # keyctl(KEYCTL_GET_KEYRING_ID, session)


def add_key():
    return call(248, 217, b"user", b"name", b"value", 5, -3)


def load_bpf_program():
    return call(321, 280, 0, struct.pack("IIII", 2, 4, 4, 1) + bytes(112), 128)


def open_performance_counter():
    return call(298, 241, bytes(128), 0, -1, -1, 0)


def handle_page_faults():
    return call(323, 282, 0)


def set_up_io_uring():
    return call(425, 425, 4, bytes(120))


def open_by_handle():
    return call(304, 265, -100, bytes(16), 0)


def name_to_handle():
    return call(303, 264, -100, SECRET.encode(), bytes(256), bytes(8), 0)


def load_module():
    return call(175, 105, 0, 0, b"")


def set_time():
    return call(227, 112, 0, struct.pack("qq", 0, 0))


def switch_off_address_randomization():
    return call(135, 92, 0x0040000)


def call_of_a_newer_kernel():
    return call(500, 500)


def type_into_the_terminal():
    import fcntl

    _, other = os.openpty()
    fcntl.ioctl(other, 0x5412, b"x")
    return True


def system_v_memory():
    identifier = LIBC.syscall(29 if X86 else 194, GIVEN["shm_key"], 0, 0)
    return identifier >= 0


# What must work.


def works_write_inside():
    write(f"{WORK}/file", "text")
    os.rename(f"{WORK}/file", f"{WORK}/renamed")
    os.makedirs(f"{WORK}/folder/below")
    return read(f"{WORK}/renamed") == "text"


def works_temporary_file():
    return write(f"{os.environ['TMPDIR']}/x") and write(f"{os.environ['HOME']}/x")


def works_subprocess():
    return subprocess.run(["/bin/sh", "-c", "echo $((6*7))"], capture_output=True).stdout == b"42\n"


def works_threads_and_pairs():
    one, other = socket.socketpair()
    thread = threading.Thread(target=one.sendall, args=(b"x",))
    thread.start()
    thread.join()
    return other.recv(1) == b"x"


def works_devices():
    return len(open("/dev/urandom", "rb").read(8)) == 8 and write("/dev/null")


def works_shared_mapping():
    mapping = mmap.mmap(-1, 4096)
    mapping[:1] = b"x"
    return True


def outcome(function):
    try:
        found = function()
    except BaseException as error:
        number = getattr(error, "errno", None)
        return {
            "done": False,
            "error": errno.errorcode.get(number, type(error).__name__),
            "text": str(error),
        }
    return {"done": bool(found), "error": "", "found": repr(found)[:200]}


if __name__ == "__main__":
    own = sys.modules["__main__"].__dict__
    helpers = {"read", "write", "call", "outcome"}
    functions = {
        name: value
        for name, value in own.items()
        if callable(value)
        and getattr(value, "__module__", "") == "__main__"
        and name not in helpers
    }
    wanted = GIVEN["attempts"] or list(functions)
    print(json.dumps({name: outcome(functions[name]) for name in wanted}))
