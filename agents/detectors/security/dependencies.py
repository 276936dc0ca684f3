"""Dependencies: versions that are not fixed, odd sources, names that imitate others, known advisories."""

import json
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from agents.api.data_file import Entry, read_entries
from agents.api.finding import Finding, Severity
from agents.detectors.detector import Detector, DetectorContext, Rule
from agents.detectors.rule_file import RuledExample
from agents.workspace.source_file import SourceFile
from agents.workspace.workspace import Workspace

_HIGH, _MEDIUM, _LOW = Severity.HIGH, Severity.MEDIUM, Severity.LOW
UNPINNED = Rule("unpinned-dependency", _LOW, "Version not fixed", cwe=1357)
WILDCARD = Rule("wildcard-version", _MEDIUM, "Any version is accepted", cwe=1357)
ODD_SOURCE = Rule("dependency-source", _MEDIUM, "Dependency from an unchecked source", cwe=829)
PLAIN_INDEX = Rule("plain-index", _HIGH, "Packages fetched without TLS", cwe=319)
EXTRA_INDEX = Rule("extra-index", _MEDIUM, "Names may come from either index", cwe=427)
TYPOSQUAT = Rule("typosquat", _HIGH, "Name that imitates another", cwe=1357)
ABANDONED = Rule("abandoned-package", _MEDIUM, "Package that was given up", cwe=1104)
NO_LOCK = Rule("no-lock-file", _LOW, "No lock file", cwe=1357)
INSTALL_SCRIPT = Rule("install-script", _MEDIUM, "Script runs at installation", cwe=829)
MISSING_HASH = Rule("missing-hash", _LOW, "Locked package without a hash", cwe=353)
VULNERABLE = Rule("known-vulnerable", _HIGH, "Version with known defects", cwe=1395)
RULES = (
    UNPINNED, WILDCARD, ODD_SOURCE, PLAIN_INDEX, EXTRA_INDEX, TYPOSQUAT, ABANDONED, NO_LOCK, INSTALL_SCRIPT,
    MISSING_HASH, VULNERABLE,
)  # fmt: skip

_DATE = "early 2024"
"""Until when `packages.yaml` knows advisories."""


class Packages(Entry):
    """What `packages.yaml` knows.

    Attributes:
        popular: names that others imitate, by ecosystem.
        similar: well-known packages whose names are close to those of others.
        abandoned: packages that were given up, with what to use instead; empty if there is nothing.
        fixed_in: by ecosystem and name the first version without widely known defects, or `never`.
        examples: tests.
    """

    popular: dict[str, tuple[str, ...]]
    similar: frozenset[str]
    abandoned: dict[str, str]
    fixed_in: dict[str, dict[str, str]]
    examples: tuple[RuledExample, ...]


@cache
def _packages() -> Packages:
    (found,) = read_entries(Path(__file__).with_name("packages.yaml"), Packages)
    return found


class Dependency(NamedTuple):
    """A declared package."""

    ecosystem: str
    name: str
    version: str
    line: int


def _detect(workspace: Workspace, context: DetectorContext) -> Iterator[Finding]:
    seen = False
    for file in workspace:
        context.check_cancelled()
        name = _name(file)
        found = list(dependencies_of(file))
        seen |= bool(found)
        for one in found:
            yield from _check(file, one)
        yield from _file_rules(file, name, workspace)
    if seen:
        context.note(
            f"Only widely known advisories up to {_DATE} were compared; pip-audit, npm audit and cargo-audit "
            "need the network and know all."
        )


def _name(file: SourceFile) -> str:
    return file.path.rsplit("/", 1)[-1].lower()


def dependencies_of(file: SourceFile) -> Iterator[Dependency]:
    """The packages that a file declares; none if it declares no dependencies."""
    name = _name(file)
    if re.fullmatch(r"(requirements|constraints).*\.(txt|in)|.*requirements\.txt", name):
        yield from _requirements(file)
    elif name == "pyproject.toml":
        yield from _toml(file, "python")
    elif name == "cargo.toml":
        yield from _toml(file, "rust")
    elif name == "package.json":
        yield from _package_json(file)
    elif name == "go.mod":
        yield from _go_modules(file)


def _go_modules(file: SourceFile) -> Iterator[Dependency]:
    for number, line in enumerate(file.lines, 1):
        match = re.match(
            r"^\s*(?:require\s+)?([\w.-]+\.[\w-]+/[\w./-]+)\s+v(\d[\w.+-]*)\s*(//.*)?$", line
        )
        if match and not line.lstrip().startswith(("module", "replace", "exclude")):
            yield Dependency("go", match[1], re.split(r"[+-]", match[2])[0], number)


_REQUIREMENT = re.compile(r"^([A-Za-z0-9][\w.-]*)(\[[^\]]*\])?\s*(.*)$")


def _requirements(file: SourceFile) -> Iterator[Dependency]:
    for number, line in enumerate(file.lines, 1):
        text = re.sub(r"(^|\s)#.*", "", line).partition(";")[0].strip()
        if text.startswith("-") or "://" in text:
            continue
        if match := _REQUIREMENT.match(text):
            yield Dependency("python", match[1].lower().replace("_", "-"), match[3].strip(), number)


def _line_of(file: SourceFile, text: str) -> int:
    at = file.text.find(text)
    return file.text.count("\n", 0, at) + 1 if at >= 0 else 1


def _toml(file: SourceFile, ecosystem: str) -> Iterator[Dependency]:
    try:
        data = tomllib.loads(file.text)
    except (tomllib.TOMLDecodeError, RecursionError, ValueError):
        return
    listed: list[Any] = []
    project = data.get("project")
    if isinstance(project, dict):
        extras = project.get("optional-dependencies")
        groups = list(extras.values()) if isinstance(extras, dict) else []
        for group in (project.get("dependencies"), *groups):
            listed += group if isinstance(group, list) else []
    for one in listed:
        if isinstance(one, str) and (match := _REQUIREMENT.match(one.partition(";")[0].strip())):
            name = match[1].lower().replace("_", "-")
            yield Dependency(ecosystem, name, match[3].strip() or "any", _line_of(file, f'"{one}"'))
    tables = [data.get(key) for key in ("dependencies", "dev-dependencies", "build-dependencies")]
    tool = data.get("tool")
    poetry = tool.get("poetry") if isinstance(tool, dict) else None
    tables.append(poetry.get("dependencies") if isinstance(poetry, dict) else None)
    for table in tables:
        for name, value in table.items() if isinstance(table, dict) else ():
            version = value if isinstance(value, str) else ""
            if isinstance(value, dict):
                version = str(value.get("version") or ("git" if "git" in value else "path"))
            match = re.search(rf"^\s*\"?{re.escape(str(name))}\"?\s*=", file.text, re.MULTILINE)
            line = file.text.count("\n", 0, match.start()) + 1 if match else 1
            if match and file.text[match.start()] == "\n":
                line += 1
            if name != "python":
                yield Dependency(ecosystem, str(name).lower(), version, line)


def _package_json(file: SourceFile) -> Iterator[Dependency]:
    try:
        data = json.loads(file.text)
    except (ValueError, RecursionError):
        return
    for key in ("dependencies", "devDependencies", "optionalDependencies"):
        table = data.get(key) if isinstance(data, dict) else None
        for name, version in table.items() if isinstance(table, dict) else ():
            if isinstance(version, str):
                yield Dependency("javascript", name, version, _line_of(file, json.dumps(name)))


def _check(file: SourceFile, one: Dependency) -> Iterator[Finding]:
    version = one.version
    label = f"{one.name} {version}".strip()
    if version in ("*", "latest", "x", "any", ">=0") or (
        one.ecosystem == "javascript" and not version
    ):
        yield WILDCARD.at(file, one.line, f"{one.name} may be any version.")
    elif re.search(r"git\+|^git\b|^https?:|github:|^file:|^path$", version):
        if version not in ("path",) and "#" not in version and "rev" not in version:
            yield ODD_SOURCE.at(file, one.line, f"{one.name} comes from a branch that may change.")
    elif (
        one.ecosystem == "python"
        and not re.search(r"==|~=|<|@", version)
        and file.path.endswith((".txt", ".in"))
    ):
        yield UNPINNED.at(file, one.line, f"{label}: fix the version, or an upper bound.")
    packages = _packages()
    known = packages.popular.get(one.ecosystem, ())
    if (
        one.name not in known
        and one.name not in packages.similar
        and (near := _imitated(one.name, known))
    ):
        yield TYPOSQUAT.at(
            file, one.line, f"{one.name} looks like {near}: is it meant?", confidence=0.7
        )
    if one.name in packages.abandoned:
        better = packages.abandoned[one.name]
        text = f"{one.name} is no longer maintained" + (f": use {better}." if better else ".")
        yield ABANDONED.at(file, one.line, text)
    fixed = packages.fixed_in.get(one.ecosystem, {}).get(one.name)
    exact = re.fullmatch(r"(?:===?|[\^~=]|~=)?\s*v?(\d+(?:\.\d+)*)", version)
    if fixed == "never" and exact:
        text = f"{label} has known defects that no version fixes ({_DATE})."
        yield VULNERABLE.at(file, one.line, text)
    elif fixed and exact and _numbers(exact[1]) < _numbers(fixed):
        text = f"{label} has known defects; {fixed} is the first without those ({_DATE})."
        yield VULNERABLE.at(file, one.line, text)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part[:6]) for part in version.split("."))


def _imitated(name: str, known: tuple[str, ...]) -> str:
    """A popular name that differs by one edit or a swap of neighbours, if `name` has at least five letters."""
    plain = name.replace("-", "").replace("_", "").replace(".", "")
    for other in known:
        if abs(len(other) - len(name)) > 1 or len(name) < 5 or name == other:
            continue
        if plain == other.replace("-", "").replace("_", "").replace(".", ""):
            return other
        if _one_edit(name, other):
            return other
    return ""


def _one_edit(one: str, other: str) -> bool:
    if len(one) == len(other):
        differing = [at for at, (a, b) in enumerate(zip(one, other, strict=True)) if a != b]
        swapped = (
            len(differing) == 2
            and differing[1] == differing[0] + 1
            and (
                one[differing[0]] == other[differing[1]]
                and one[differing[1]] == other[differing[0]]
            )
        )
        return len(differing) == 1 or swapped
    short, long = sorted((one, other), key=len)
    return any(long[:at] + long[at + 1 :] == short for at in range(len(long)))


def _file_rules(file: SourceFile, name: str, workspace: Workspace) -> Iterator[Finding]:
    index_file = (
        name.startswith(("requirements", "pip.conf", ".npmrc", "pip.ini")) or name == "setup.cfg"
    )
    for number, line in (
        enumerate(file.lines, 1) if index_file or file.language in ("dockerfile", "bash") else ()
    ):
        if re.search(r"(--index-url|-i|--extra-index-url|--find-links|registry)[ =]+http://", line):
            yield PLAIN_INDEX.at(file, number, "Packages can be replaced on the way: use https.")
        elif "--extra-index-url" in line:
            yield EXTRA_INDEX.at(file, number, "A public package of the same name may win.")
        elif (
            re.search(r"git\+(https?|ssh|git)://[^@\s]+(\.git)?(\s|$|#egg)", line)
            and "requirements" in name
        ):
            yield ODD_SOURCE.at(file, number, "The dependency comes from a branch that may change.")
        elif re.search(r"^\s*(-e\s+)?http://\S+\.(whl|tar\.gz|zip)", line):
            yield PLAIN_INDEX.at(file, number, "The archive can be replaced on the way.")
    if name == "package.json":
        match = re.search(
            r'"(pre|post)?install"\s*:\s*"([^"]*(curl|wget|node -e|eval|sh )[^"]*)"', file.text
        )
        if match:
            at = file.text.count("\n", 0, match.start()) + 1
            yield INSTALL_SCRIPT.at(file, at, "A script runs when the package is installed.")
        folder = file.path.rpartition("/")[0]
        prefix = f"{folder}/" if folder else ""
        locks = (
            "package-lock.json", "yarn.lock", "pnpm-lock.yaml", "bun.lockb", "npm-shrinkwrap.json",
        )  # fmt: skip
        if '"dependencies"' in file.text and not any(workspace.get(prefix + one) for one in locks):
            yield NO_LOCK.at(file, 1, "Installations differ: commit a lock file.", confidence=0.6)
    if name == "package-lock.json":
        yield from _lock(file)


def _lock(file: SourceFile) -> Iterator[Finding]:
    for number, line in enumerate(file.lines, 1):
        if match := re.search(r'"resolved":\s*"(http://[^"]+)"', line):
            yield PLAIN_INDEX.at(file, number, f"{match[1][:80]} is fetched without TLS.")
        elif '"resolved"' in line and "https://" in line:
            after = "\n".join(file.lines[number : number + 2])
            if '"integrity"' not in after:
                yield MISSING_HASH.at(file, number, "The package has no integrity hash.")


DEPENDENCIES = Detector(
    "dependencies",
    "Reads dependency files: versions, sources, imitated names, widely known advisories.",
    _detect,
    RULES,
)
