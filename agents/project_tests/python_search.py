"""`python_environments`: the interpreters that a project's tests may run with, in a fixed order.

    1  .venv, venv, env, .conda, .pixi in the project's folder, then in the folders above it up to the
       repository's top; before them the folder that UV_PROJECT_ENVIRONMENT names
    2  the activated environment: VIRTUAL_ENV, CONDA_PREFIX
    3  those that tools keep elsewhere for this project: pdm, poetry, pipenv, virtualenvwrapper, hatch,
       conda (environment.yml), pyenv (.python-version)
    4  .tox/* and .nox/*
    5  the first python on PATH
    6  the interpreter that runs Pravāha

The interpreter of Pravāha itself is never taken for an activated one or the first on PATH.
"""

import base64
import hashlib
import os
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from agents.project_tests.python_environment import (
    PythonEnvironment,
    environment_in,
    environment_of,
)
from agents.project_tests.small_files import text_of, toml_of

IN_PROJECT = (".venv", "venv", "env", ".env", ".virtualenv", "virtualenv", ".conda")
_LOCKS = (
    ("uv.lock", "uv"), ("poetry.lock", "poetry"), ("pdm.lock", "pdm"), ("Pipfile", "pipenv"),
)  # fmt: skip
_CONDA_FILES = ("environment.yml", "environment.yaml", "conda.yml", "conda.yaml")
_CONDA_FOLDERS = (
    ".conda/envs", "miniconda3/envs", "anaconda3/envs", "miniforge3/envs", "mambaforge/envs",
    "micromamba/envs", ".local/share/mamba/envs",
)  # fmt: skip
_SHIMS = ("shims",)
OWN = "Pravāha's own interpreter"


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What of the user's machine decides which environment is found.

    Attributes:
        environ: the user's variables.
        home: the user's home folder.
        own: prefixes of the interpreter that runs Pravāha.
        python: that interpreter.
    """

    environ: Mapping[str, str]
    home: Path
    own: tuple[str, ...]
    python: str

    @classmethod
    def here(cls) -> "Surroundings":
        """Those of this process."""
        return cls(os.environ, Path.home(), (sys.prefix, sys.exec_prefix), sys.executable)

    def is_own(self, folder: Path) -> bool:
        """Whether a folder is Pravāha's own environment."""
        real = os.path.realpath(folder)
        return any(real == os.path.realpath(one) for one in self.own)


Found = PythonEnvironment | str
"""An environment, or one sentence that says why one that is there cannot be used."""


def python_environments(
    root: Path, around: Surroundings, *, any_python: bool = True
) -> Iterator[Found]:
    """The environments in order, each once. Costs some hundred look-ups of files at most.

    Args:
        root: the project's folder.
        around: what of the machine counts.
        any_python: whether interpreters that are not the project's (5 and 6) are among them.
    """
    seen: set[str] = set()
    for one in _all(root, around, any_python=any_python):
        key = one if isinstance(one, str) else str(one.python)
        if key not in seen:
            seen.add(key)
            yield one


def _all(root: Path, around: Surroundings, *, any_python: bool) -> Iterator[Found]:
    folders = folders_up(root, around.home)
    for folder in folders:
        yield from _beside(folder, root, around)
    yield from _activated(around)
    for folder in folders:
        yield from _elsewhere(folder, around)
    for folder in folders:
        yield from _of_runners(folder, root)
    if any_python:
        own = environment_of(Path(around.python), OWN, "no other was found", home=around.home)
        for one in (*_on_path(around), own):
            yield one if isinstance(one, str) else replace(one, foreign=True)


def folders_up(root: Path, home: Path) -> list[Path]:
    """A project's folder and those above it up to the top of its repository; the folder alone without one."""
    folders = [root, *root.parents]
    for index, folder in enumerate(folders):
        if (folder / ".git").exists():
            return folders[: index + 1]
        if folder == home:
            break
    return [root]


def manager_of(folder: Path) -> str:
    """The tool that keeps a project's environment, by its lock file; empty if none is known."""
    return next((tool for name, tool in _LOCKS if (folder / name).is_file()), "")


def _beside(folder: Path, root: Path, around: Surroundings) -> Iterator[Found]:
    manager = manager_of(folder)
    owner = f"{manager}'s" if manager else "the project's"
    named = around.environ.get("UV_PROJECT_ENVIRONMENT", "") if manager == "uv" else ""
    paths = [folder / named] if named else []
    paths += [folder / name for name in IN_PROJECT]
    paths += sorted((folder / ".pixi" / "envs").glob("*"))
    for path in paths:
        shown = _shown(path, root)
        if path.is_file() and path.name == ".venv":
            path = _named_venv(path, around)
        found = environment_in(
            path, f"{owner} environment {shown}", f"it lies in {_place(folder, root)}"
        )
        if found is not None:
            yield found


def _named_venv(file: Path, around: Surroundings) -> Path:
    """Pipenv's and virtualenvwrapper's file `.venv`, which names an environment or its folder."""
    name = text_of(file).strip().split("\n")[0]
    folder = Path(name).expanduser()
    return folder if folder.is_absolute() else _workon(around) / name


def _workon(around: Surroundings) -> Path:
    given = around.environ.get("WORKON_HOME")
    return Path(given) if given else around.home / ".local" / "share" / "virtualenvs"


def _activated(around: Surroundings) -> Iterator[Found]:
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        value = around.environ.get(variable, "")
        if not os.path.isabs(value) or around.is_own(Path(value)):
            continue
        found = environment_in(
            Path(value), f"the activated environment {value}", f"{variable} names it"
        )
        if found is not None:
            yield found


def _elsewhere(folder: Path, around: Surroundings) -> Iterator[Found]:
    for path, tool in _kept_by_tools(folder, around):
        found = environment_in(
            path, f"{tool}'s environment {path}", f"{tool} keeps it for this project"
        )
        if found is not None:
            yield found
    yield from _pdm(folder)
    yield from _pyenv(folder, around)


def _kept_by_tools(folder: Path, around: Surroundings) -> Iterator[tuple[Path, str]]:
    data = toml_of(folder / "pyproject.toml")
    real = os.path.normcase(os.path.realpath(folder))
    name = _project_name(data)
    if name and ((folder / "poetry.lock").is_file() or "poetry" in _table(data, "tool")):
        given = around.environ.get("POETRY_VIRTUALENVS_PATH")
        place = Path(given) if given else around.home / ".cache" / "pypoetry" / "virtualenvs"
        plain = re.sub(r'[ $`!*@"\\\r\n\t]', "_", name.lower())[:42]
        for path in _newest(place, f"{_literal(plain)}-{_digest(real)}-py*"):
            yield path, "poetry"
    for path in _newest(_workon(around), "*"):
        if (
            text_of(path / ".project").strip() in (str(folder), real)
            and (path / ".project").is_file()
        ):
            yield path, "pipenv" if (folder / "Pipfile").is_file() else "virtualenvwrapper"
    if "hatch" in _table(data, "tool") or (folder / "hatch.toml").is_file():
        place = around.home / ".local" / "share" / "hatch" / "env" / "virtual"
        paths = _newest(place, f"*/{_digest(real)}/*")
        # The environment of `hatch test` first, then that named after the project, which is the default.
        for path in sorted(
            paths, key=lambda one: (not one.name.startswith("hatch-test"), one.name)
        ):
            yield path, "hatch"
    for file in _CONDA_FILES:
        match = re.search(r"^name:\s*['\"]?([\w.-]+)", text_of(folder / file), re.MULTILINE)
        if match is not None:
            for place in _conda_places(around):
                yield place / match[1], "conda"


def _conda_places(around: Surroundings) -> list[Path]:
    places = [
        Path(one) for one in around.environ.get("CONDA_ENVS_PATH", "").split(os.pathsep) if one
    ]
    program = around.environ.get("CONDA_EXE", "")
    if os.path.isabs(program):
        places.append(Path(program).parent.parent / "envs")
    root = around.environ.get("MAMBA_ROOT_PREFIX", "")
    if os.path.isabs(root):
        places.append(Path(root) / "envs")
    return [*places, *(around.home / name for name in _CONDA_FOLDERS)]


def _pdm(folder: Path) -> Iterator[Found]:
    named = text_of(folder / ".pdm-python").strip()
    if os.path.isabs(named):
        yield environment_of(Path(named), f"pdm's interpreter {named}", ".pdm-python names it")


def _pyenv(folder: Path, around: Surroundings) -> Iterator[Found]:
    if not (folder / ".python-version").is_file():
        return
    for version in text_of(folder / ".python-version").split():
        python = _pyenv_python(version, around)
        if python is not None:
            yield environment_of(
                python, f"pyenv's {version}", ".python-version names it", home=around.home
            )


def _pyenv_python(version: str, around: Surroundings) -> Path | None:
    """The interpreter of a version such as `3.11`, `3.11.7` or the name of an environment of pyenv's."""
    if not re.fullmatch(r"[\w.-]+", version) or version.startswith("."):
        return None
    given = around.environ.get("PYENV_ROOT")
    versions = (Path(given) if given else around.home / ".pyenv") / "versions"
    for path in (versions / version, *_newest(versions, f"{_literal(version)}.*")):
        python = path / "bin" / "python"
        if python.is_file():
            return python
    return None


def _of_runners(folder: Path, root: Path) -> Iterator[Found]:
    for place, tool in ((".tox", "tox"), (".nox", "nox")):
        for path in _newest(folder / place, "*"):
            shown = _shown(path, root)
            found = environment_in(path, f"{tool}'s environment {shown}", f"{tool} made it")
            if found is not None:
                yield found


def _on_path(around: Surroundings) -> Iterator[Found]:
    for name in around.environ.get("PATH", "").split(os.pathsep):
        folder = Path(name)
        if not folder.is_absolute():
            continue
        for program in ("python", "python3"):
            python = folder / program
            if not (python.is_file() and os.access(python, os.X_OK)):
                continue
            if folder.name in _SHIMS:
                chosen = _shimmed(python, around)
                if chosen is None:
                    continue
                python = chosen
            if around.is_own(python.parent.parent):
                continue
            yield environment_of(python, f"{python}", "it is the first on PATH", home=around.home)
            return


def _shimmed(shim: Path, around: Surroundings) -> Path | None:
    """The interpreter behind pyenv's shim, which is a script that does not run in the sandbox."""
    given = around.environ.get("PYENV_VERSION", "")
    versions = given.split(":") if given else text_of(shim.parent.parent / "version").split()
    return next((one for name in versions if (one := _pyenv_python(name, around))), None)


def _shown(path: Path, root: Path) -> str:
    try:
        return path.relative_to(root).as_posix()
    except ValueError:
        return str(path)


def _place(folder: Path, root: Path) -> str:
    return "the project's folder" if folder == root else f"{folder}, the repository above it"


def _newest(folder: Path, pattern: str) -> list[Path]:
    """The matching folders, the newest first."""
    try:
        found = [(one.stat().st_mtime_ns, one) for one in folder.glob(pattern) if one.is_dir()]
    except OSError:
        return []
    return [one for _, one in sorted(found, reverse=True)]


def _literal(text: str) -> str:
    """A text in a pattern of file names."""
    return re.sub(r"([*?[])", r"[\1]", text)


def _digest(folder: str) -> str:
    """What poetry and hatch put into the name of a project's environment."""
    return base64.urlsafe_b64encode(hashlib.sha256(folder.encode()).digest()).decode()[:8]


def _table(data: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = data.get(name)
    return value if isinstance(value, Mapping) else {}


def _project_name(data: Mapping[str, Any]) -> str:
    for table in (_table(data, "project"), _table(_table(data, "tool"), "poetry")):
        name = table.get("name")
        if isinstance(name, str) and name:
            return name
    return ""
