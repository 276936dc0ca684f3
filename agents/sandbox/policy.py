"""`SandboxPolicy`: what a command may reach and use."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from agents.api.errors import InvalidTask

Profile = Literal["restricted", "developer"]
"""`restricted`: system folders, this interpreter and the given folders are visible. `developer`: the
toolchains in the home folder are visible, too, address space is not limited, and processes may be traced."""

Network = Literal["none", "loopback", "full"]
"""`loopback` is a loopback interface of the sandbox's own, not the machine's."""

SandboxMode = Literal["auto", "bubblewrap", "landlock", "off"]
"""Which sandbox is used: `auto` takes the first that works. `off` runs commands without one; each of them
then needs an approval."""

PROTECTED = (".git", ".pravaha")
"""Entries of a writable folder that stay read-only: what they say is executed outside of the sandbox."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a command may use. Every limit is enforced by the kernel, or by the sandbox's supervisor.

    Attributes:
        memory_bytes: private memory of each process; of all processes together where a cgroup is available.
        cpu_s: processor seconds of each process.
        processes: processes and threads at a time.
        file_bytes: size of each file that is written.
        open_files: descriptors of each process.
        wall_s: seconds until everything is killed.
    """

    memory_bytes: int = 2 << 30
    cpu_s: int = 300
    processes: int = 256
    file_bytes: int = 256 << 20
    open_files: int = 1_024
    wall_s: float = 60.0


@dataclass(frozen=True, slots=True)
class SandboxPolicy:
    """What a command may reach and use.

    Attributes:
        profile: which files beside those below are visible.
        network: what it may connect to.
        readable: files and folders that it may read and execute.
        writable: folders that it may change, and read; their entries named in `PROTECTED` stay read-only.
        limits: what it may use.
    """

    profile: Profile = "restricted"
    network: Network = "none"
    readable: tuple[Path, ...] = ()
    writable: tuple[Path, ...] = ()
    limits: Limits = field(default_factory=Limits)

    def checked(self) -> "SandboxPolicy":
        """The policy with absolute paths free of symbolic links.

        Raises:
            InvalidTask: a folder does not exist, or would open the whole home folder.
        """
        return SandboxPolicy(
            self.profile,
            self.network,
            tuple(_resolved(path) for path in self.readable),
            tuple(_resolved(path) for path in self.writable),
            self.limits,
        )


def _resolved(path: Path) -> Path:
    try:
        found = path.resolve(strict=True)
    except OSError as error:
        raise InvalidTask(f"The sandbox cannot open {path}: {error.strerror}.") from error
    home = Path.home().resolve()
    if home.is_relative_to(found):
        raise InvalidTask(
            f"The sandbox does not open {found}, which contains your home folder: use a project's folder."
        )
    return found


def protected_below(writable: tuple[Path, ...]) -> list[Path]:
    """The entries of writable folders that stay read-only, as far as they exist."""
    found = [folder / name for folder in writable for name in PROTECTED]
    return [path for path in found if path.exists() and not path.is_symlink()]
