"""`PythonEnvironment`: an interpreter with its packages, as the files on the disk show it.

Nothing is executed: a project's environment is its own code, which runs in the sandbox after an approval.
Folders outside of the project are opened to the sandbox only if they have the structure of a Python
environment, so a file of the project, such as a link or `pyvenv.cfg`, cannot open anything else.
"""

import os
import re
from dataclasses import dataclass
from pathlib import Path

from agents.project_tests.small_files import text_of

_VERSIONED = re.compile(r"python3(\.\d+)?t?$")
_SYSTEM_PACKAGES = ("/usr/lib/python3/dist-packages", "/usr/local/lib/python3*/dist-packages")


@dataclass(frozen=True, slots=True)
class PythonEnvironment:
    """An interpreter that a project's tests may run with.

    Attributes:
        name: for people, such as `.venv of the project`.
        why: why it is taken, as the end of a sentence.
        python: the program, as it is executed; links are not followed, since a virtual environment is
            recognised by the place of its link.
        folder: the environment, such as that of `pyvenv.cfg`.
        packages: its existing folders of packages.
        readable: folders that the interpreter needs beside the system's, unresolved.
        user_base: folder of packages installed with `pip --user`, or None.
        foreign: whether it does not belong to the project: the first on PATH, and Pravāha's own.
    """

    name: str
    why: str
    python: Path
    folder: Path
    packages: tuple[Path, ...] = ()
    readable: tuple[Path, ...] = ()
    user_base: Path | None = None
    foreign: bool = False

    def has(self, module: str) -> bool:
        """Whether a package or module is installed."""
        return any(
            (folder / module / "__init__.py").is_file() or (folder / f"{module}.py").is_file()
            for folder in self.packages
        )

    @property
    def programs(self) -> Path:
        """The folder of its programs."""
        return self.python.parent

    @property
    def variables(self) -> dict[str, str]:
        """What activating it would set, but `PATH`."""
        found = {"VIRTUAL_ENV": str(self.folder)} if _is_venv(self.folder) else {"VIRTUAL_ENV": ""}
        if (self.folder / "conda-meta").is_dir():
            found["CONDA_PREFIX"] = str(self.folder)
        if self.user_base is not None:
            found["PYTHONUSERBASE"] = str(self.user_base)
        return found


def environment_in(folder: Path, name: str, why: str) -> PythonEnvironment | str | None:
    """The environment of a folder, or why it cannot be used; None if the folder is no environment."""
    if not (_is_venv(folder) or (folder / "conda-meta").is_dir()):
        return None
    for place in ("bin", "Scripts"):
        for program in ("python", "python3"):
            python = folder / place / program
            if python.is_symlink() and not python.exists():
                return (
                    f"{name} is broken: {python} points to {os.readlink(python)}, which is gone. "
                    "Make it again."
                )
            if python.is_file() and os.access(python, os.X_OK):
                return environment_of(python, name, why)
    if (folder / "Scripts" / "python.exe").is_file():
        return f"{name} was made on Windows and does not run here. Make it again."
    return f"{name} is broken: it has no interpreter. Make it again."


def environment_of(
    python: Path, name: str, why: str, *, home: Path | None = None
) -> PythonEnvironment | str:
    """The environment of an interpreter, or why it cannot be used.

    Args:
        python: the program.
        name: for people.
        why: why it is taken.
        home: where packages of the user are looked for if it is no virtual environment.
    """
    if not (python.is_file() and os.access(python, os.X_OK)):
        return f"{name} cannot be used: {python} is no program."
    folder = python.parent.parent
    readable: list[Path] = []
    if _is_venv(folder):
        base, system_too = _base_of(folder, python)
        packages = _packages(folder)
        if system_too and base is not None:
            packages += _packages(base)
        readable.append(folder)
    else:
        base = _prefix(Path(os.path.realpath(python)))
        folder = folder if (folder / "conda-meta").is_dir() or base is None else base
        packages = _packages(folder)
    user_base = None
    if home is not None and not _is_venv(folder) and (home / ".local" / "lib").is_dir():
        user_base = home / ".local"
        packages += [one for one in _packages(user_base) if _same_version(one, packages)]
    if (folder / "conda-meta").is_dir():
        readable.append(folder)
    readable += _installation(base)
    return PythonEnvironment(
        name, why, python, folder, tuple(packages), tuple(dict.fromkeys(readable)), user_base
    )


def _is_venv(folder: Path) -> bool:
    return (folder / "pyvenv.cfg").is_file()


def _base_of(folder: Path, python: Path) -> tuple[Path | None, bool]:
    """The installation below a virtual environment, and whether its packages are visible."""
    members = _configuration(folder / "pyvenv.cfg")
    system_too = members.get("include-system-site-packages", "").lower() == "true"
    home = members.get("home", "")
    if os.path.isabs(home):
        prefix = Path(home).parent
        if _is_installation(prefix):
            return prefix, system_too
    return _prefix(Path(os.path.realpath(python))), system_too


def _configuration(path: Path) -> dict[str, str]:
    lines = (line.partition("=") for line in text_of(path).splitlines())
    return {name.strip().lower(): value.strip() for name, _, value in lines}


def _prefix(python: Path) -> Path | None:
    """The installation that a resolved program belongs to."""
    prefix = python.parent.parent
    return prefix if _is_installation(prefix) else None


def _is_installation(prefix: Path) -> bool:
    try:
        return any(
            _VERSIONED.match(one.name) and (one / "os.py").is_file()
            for place in ("lib", "lib64")
            if (prefix / place).is_dir()
            for one in (prefix / place).iterdir()
        )
    except OSError:
        return False


def _installation(prefix: Path | None) -> list[Path]:
    """The parts of an installation that an interpreter reads, where the sandbox does not show them anyway."""
    if prefix is None or str(prefix) in ("/", "/usr", "/usr/local"):
        return []
    return [one for name in ("bin", "lib", "lib64") if (one := prefix / name).is_dir()]


def _packages(prefix: Path) -> list[Path]:
    found = [
        one
        for pattern in ("lib/python3*/site-packages", "lib64/python3*/site-packages")
        for one in sorted(prefix.glob(pattern))
    ]
    if (prefix / "Lib" / "site-packages").is_dir():
        found.append(prefix / "Lib" / "site-packages")
    if str(prefix) in ("/usr", "/usr/local"):
        found += [one for name in _SYSTEM_PACKAGES for one in sorted(Path("/").glob(name[1:]))]
    return found


def _same_version(packages: Path, others: list[Path]) -> bool:
    """Whether a folder of packages is that of the same Python, by the folder above; `python3` fits any."""
    versions = {one.parent.name for one in others} - {"python3"}
    return not versions or packages.parent.name in versions
