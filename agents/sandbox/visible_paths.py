"""Files of this machine that sandboxed commands may read: system folders, the interpreter, toolchains.

`/etc` is not opened as a whole: only what programs need to start, resolve names and verify certificates.
"""

import os
import sys
from functools import cache
from pathlib import Path

from agents.sandbox.policy import Network, Profile

_SYSTEM = (
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix/store", "/gnu/store",
    "/etc/alternatives", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/passwd",
    "/etc/group", "/etc/nsswitch.conf", "/etc/localtime", "/etc/timezone", "/etc/mime.types", "/etc/magic",
    "/etc/ssl/certs", "/etc/ssl/openssl.cnf", "/etc/pki/tls/certs", "/etc/pki/ca-trust/extracted",
    "/etc/ca-certificates", "/etc/terminfo", "/etc/fonts", "/etc/protocols", "/etc/services",
    "/sys/devices/system/cpu",
)  # fmt: skip
_NAME_RESOLUTION = ("/etc/hosts", "/etc/resolv.conf", "/etc/host.conf", "/etc/gai.conf")
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")

_MOST_LINKS = 40  # as the kernel's

_TOOLCHAINS = (
    ".cargo/bin", ".cargo/registry", ".cargo/git", ".rustup", ".pyenv/versions", ".nvm/versions", ".fnm",
    ".volta", ".asdf/installs", ".local/share/mise/installs", ".local/share/uv/python", ".local/bin",
    ".local/lib", ".local/pipx", ".local/share/pipx", ".local/share/uv/tools",
    "go", ".sdkman/candidates", ".m2/repository", ".deno/bin", ".bun/bin",
)  # fmt: skip
_TOOLCHAIN_VARIABLES = (
    "RUSTUP_TOOLCHAIN", "GOROOT", "GOFLAGS", "JAVA_HOME", "NVM_DIR", "CC", "CXX", "AR",
)  # fmt: skip


def visible_paths(profile: Profile, network: Network) -> list[Path]:
    """The existing files and folders that a profile may read and execute."""
    names = [Path(name) for name in _SYSTEM]
    names += interpreter_paths()
    if network != "none":
        names += [Path(name) for name in _NAME_RESOLUTION]
    if profile == "developer":
        names += [Path.home() / name for name in _TOOLCHAINS]
    return [path for path in dict.fromkeys(names) if path.exists()]


@cache
def interpreter_paths() -> tuple[Path, ...]:
    """The folders of this Python: its virtual environment and the installation below it."""
    given = [sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix]
    given.append(os.path.dirname(os.path.realpath(sys.executable)))
    names = [name for path in given for name in (path, os.path.realpath(path))]
    return tuple(Path(name) for name in dict.fromkeys(names) if name != "/")


def links_to(path: str) -> list[Path]:
    """The symbolic links that are followed on the way to a path, folders in it included."""
    found: list[Path] = []
    current, left = Path("/"), list(Path(path).parts[1:])
    while left and len(found) < _MOST_LINKS:
        part = left.pop(0)
        current = current.parent if part == ".." else current / part
        if current.is_symlink():
            found.append(current)
            target = Path(os.readlink(current))
            left = [one for one in target.parts if one != target.anchor] + left
            current = Path("/") if target.is_absolute() else current.parent
    return found


def base_environment(profile: Profile, visible: list[Path], scratch: Path) -> dict[str, str]:
    """The variables of every sandboxed command. Nothing of the caller's is passed on but these.

    Args:
        profile: `developer` gets the variables that toolchains are found by.
        visible: the files that the command can read; other folders of PATH are left out.
        scratch: the command's private folder with `home` and `tmp`.
    """
    temporary = str(scratch / "tmp")
    environment = {
        "PATH": _search_path(visible),
        "HOME": str(scratch / "home"),
        "TMPDIR": temporary,
        "TMP": temporary,
        "TEMP": temporary,
        "LANG": "C.UTF-8",
        "LC_ALL": "C.UTF-8",
        "TERM": "dumb",
        "NO_COLOR": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    if sys.prefix != sys.base_prefix:
        environment["VIRTUAL_ENV"] = sys.prefix
    if profile == "developer":
        environment |= {
            name: os.environ[name] for name in _TOOLCHAIN_VARIABLES if name in os.environ
        }
        home = Path.home()
        for name, folder in (
            ("CARGO_HOME", ".cargo"),
            ("RUSTUP_HOME", ".rustup"),
            ("GOPATH", "go"),
        ):
            if (home / folder).is_dir():
                environment[name] = str(home / folder)
    return environment


def _search_path(visible: list[Path]) -> str:
    folders = [os.path.dirname(sys.executable), *os.environ.get("PATH", "").split(os.pathsep)]
    folders += ["/usr/local/bin", "/usr/bin", "/bin"]
    kept = [
        folder
        for folder in dict.fromkeys(folders)
        if os.path.isabs(folder) and any(Path(folder).is_relative_to(path) for path in visible)
    ]
    return os.pathsep.join(kept)
