"""Commands that run the tests of projects that are not Python's, and those of Makefile and justfile."""

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from agents.project_tests.python_environment import PythonEnvironment, environment_in
from agents.project_tests.python_search import Surroundings
from agents.project_tests.small_files import json_of, text_of

_NPM_NONE = re.compile(r"echo .*no test", re.IGNORECASE)
_MANAGERS = (
    ("pnpm-lock.yaml", "pnpm"), ("yarn.lock", "yarn"), ("bun.lock", "bun"), ("bun.lockb", "bun"),
    ("package-lock.json", "npm"),
)  # fmt: skip
_TARGETS = ("test", "tests", "check")


@dataclass(frozen=True, slots=True)
class ToolCommand:
    """A command of a tool, or why it cannot be run.

    Attributes:
        name: for people, such as `make test`.
        why: why it is taken, as the end of a sentence.
        words: the program and its arguments.
        program: the file of the program, or None if it is not installed.
        variables: what it is run with.
        missing: one sentence that says what the person has to do; empty if it can be run.
    """

    name: str
    why: str
    words: tuple[str, ...]
    program: Path | None
    variables: Mapping[str, str]
    missing: str = ""


def tool_commands(root: Path, around: Surroundings, names: frozenset[str]) -> Iterator[ToolCommand]:
    """The commands of a project in order: cargo, go, node's package managers, make, just.

    Args:
        root: the project's folder.
        around: where programs are looked for.
        names: paths of its files.
    """
    if "Cargo.toml" in names:
        yield _command("cargo test --offline --no-fail-fast", "there is a Cargo.toml", around)
    if "go.mod" in names and any(name.endswith("_test.go") for name in names):
        variables = {"GOPROXY": "off", "GOTOOLCHAIN": "local", "GOFLAGS": "-mod=mod"}
        if (root / "vendor").is_dir():
            del variables["GOFLAGS"]
        yield _command("go test ./...", "there is a go.mod", around, variables)
    yield from _node(root, around)
    yield from _targets(root, around)


def _node(root: Path, around: Surroundings) -> Iterator[ToolCommand]:
    package = json_of(root / "package.json")
    scripts = package.get("scripts")
    script = scripts.get("test") if isinstance(scripts, dict) else None
    if not isinstance(script, str) or _NPM_NONE.search(script):
        return
    manager = next((tool for name, tool in _MANAGERS if (root / name).is_file()), "")
    declared = package.get("packageManager")
    if not manager and isinstance(declared, str):
        manager = declared.partition("@")[0]
    if manager not in ("npm", "pnpm", "yarn", "bun"):
        manager = "npm"
    words = "bun run test" if manager == "bun" else f"{manager} test"
    command = _command(words, "package.json has a script `test`", around, {"CI": "1"})
    needs = any(package.get(key) for key in ("dependencies", "devDependencies"))
    if not command.missing and needs and not (root / "node_modules").is_dir():
        missing = f"The packages of package.json are not installed: run `{manager} install`."
        command = ToolCommand(
            command.name, command.why, command.words, command.program, command.variables, missing
        )
    yield command


def _targets(root: Path, around: Surroundings) -> Iterator[ToolCommand]:
    for file, program, pattern in (
        ("GNUmakefile", "make", r"^{}\s*:(?!=)"),
        ("makefile", "make", r"^{}\s*:(?!=)"),
        ("Makefile", "make", r"^{}\s*:(?!=)"),
        ("justfile", "just", r"^@?{}(\s[^:=]*)?:(?!=)"),
        ("Justfile", "just", r"^@?{}(\s[^:=]*)?:(?!=)"),
        (".justfile", "just", r"^@?{}(\s[^:=]*)?:(?!=)"),
    ):
        text = text_of(root / file)
        for target in _TARGETS:
            if re.search(pattern.format(target), text, re.MULTILINE):
                why = f"{file} has a target `{target}`"
                yield _command(f"{program} {target}", why, around)
                break


def _command(
    line: str, why: str, around: Surroundings, variables: Mapping[str, str] | None = None
) -> ToolCommand:
    words = tuple(line.split())
    program = program_on_path(words[0], around)
    missing = "" if program is not None else f"{words[0]} is not installed: {why}, so install it."
    return ToolCommand(line, why, words, program, variables or {}, missing)


def program_on_path(name: str, around: Surroundings) -> Path | None:
    """The first program of a name on PATH."""
    for folder in around.environ.get("PATH", "").split(os.pathsep):
        path = Path(folder) / name
        if path.is_absolute() and path.is_file() and os.access(path, os.X_OK):
            return path
    return None


def read_by(program: Path) -> tuple[Path, ...]:
    """What a program reads of itself: its file, and its environment if it is one of Python's."""
    real = Path(os.path.realpath(program))
    found = environment_in(real.parent.parent, program.name, "")
    more = found.readable if isinstance(found, PythonEnvironment) else ()
    return (program, real, *more)
