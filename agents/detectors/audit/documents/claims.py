"""Documents against code: paths, routes, ports, limits and dotted names that do not exist."""

import ast
import re
from collections.abc import Iterator
from functools import cached_property

from agents.api.finding import Finding, Severity
from agents.detectors.audit.documents.ports import known_ports
from agents.detectors.audit.documents.routes import METHODS, Route, plain_path, served_routes
from agents.detectors.audit.python_module import PythonModule, is_test_path, module_of
from agents.detectors.detector import Detector, DetectorContext, Rule
from agents.workspace.source_file import SourceFile
from agents.workspace.workspace import Workspace

_MEDIUM = Severity.MEDIUM
MISSING_PATH = Rule("missing-path", _MEDIUM, "Path that does not exist", cwe=1059)
ROUTE = Rule("documented-route", _MEDIUM, "Documented route does not exist", cwe=1059)
PORT = Rule("documented-port", _MEDIUM, "Documented port is another", cwe=1059)
LIMIT = Rule("documented-limit", _MEDIUM, "Documented limit is another", cwe=1059)
SYMBOL = Rule("documented-name", _MEDIUM, "Documented name does not exist", cwe=1059)
RULES = (MISSING_PATH, ROUTE, PORT, LIMIT, SYMBOL)

_HISTORY = re.compile(r"(?i)(^|/)(CHANGELOG|HISTORY|NEWS|CHANGES|MIGRATION|UPGRADING)")
_CODE = re.compile(r"`([^`\n]+)`")
_RUNS = re.compile(
    r"(?:^|[\s$>;&|`])(?:python3?|bash|sh|node|ruby|source|\.|deno run|go run|uv run|pytest)\s+((?:[\w.-]+/)*[\w.-]+\.(?:py|sh|js|mjs|ts|rb|go))\b"
    r"|(?:^|[\s$>;&|`])\./((?:[\w.-]+/)*[\w.-]+\.(?:py|sh|js|rb))\b"
)
_FILE = re.compile(
    r"^(?:\./)?((?:[\w.-]+/)+[\w.-]+\.(?:py|sh|js|ts|go|rs|toml|ya?ml|json|md|cfg|ini|sql|html|css))$"
)
_ROUTE = re.compile(rf"\b({'|'.join(METHODS)})\s+`?(/[^\s`'\"),;]*)")
_PORT = re.compile(
    r"(?i)\bport\s+(?:number\s+)?`?(\d{2,5})`?\b|\b(?:localhost|127\.0\.0\.1|0\.0\.0\.0):(\d{2,5})\b"
)
_LIMIT = re.compile(
    r"(?i)\b(?:at most|up to|no more than|maximum(?: of)?|max\.?|limit(?:ed)? (?:to|of))\s+`?(\d[\d,_]*)\b"
)
_DOTTED = re.compile(r"^([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+)(\(.*\))?$")


class _Facts:
    """What the workspace has, computed when it is asked for."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace

    @cached_property
    def paths(self) -> frozenset[str]:
        """All files and folders."""
        found: set[str] = set()
        for path in [
            *(file.path for file in self.workspace),
            *(one.path for one in self.workspace.skipped),
        ]:
            parts = path.split("/")
            found |= {"/".join(parts[:end]) for end in range(1, len(parts) + 1)}
        return frozenset(found)

    @cached_property
    def routes(self) -> list[Route]:
        """All served routes."""
        return served_routes(self.workspace)

    @cached_property
    def ports(self) -> set[int]:
        """All ports in settings and code."""
        return known_ports(self.workspace)

    @cached_property
    def modules(self) -> dict[str, PythonModule]:
        """Modules by dotted name, from the root or from `src`."""
        found: dict[str, PythonModule] = {}
        for file in self.workspace.of("python"):
            module = module_of(file)
            if module is not None:
                name = (
                    file.path.removesuffix(".py")
                    .removesuffix("/__init__")
                    .removeprefix("src/")
                    .replace("/", ".")
                )
                found[name] = module
        return found


def _detect(workspace: Workspace, context: DetectorContext) -> Iterator[Finding]:
    facts = _Facts(workspace)
    for file in workspace.of("markdown", "rst"):
        context.check_cancelled()
        if not _HISTORY.search(file.path) and not is_test_path(file.path):
            yield from _document(file, facts)


def _document(file: SourceFile, facts: _Facts) -> Iterator[Finding]:
    for number, line in enumerate(file.lines, 1):
        if len(line) > 2_000:
            continue
        yield from _paths(file, number, line, facts)
        yield from _routes(file, number, line, facts)
        yield from _ports(file, number, line, facts)
        yield from _names(file, number, line, facts)


def _paths(file: SourceFile, number: int, line: str, facts: _Facts) -> Iterator[Finding]:
    named = [(match[1] or match[2], True) for match in _RUNS.finditer(line)]
    named += [(match[1], False) for code in _CODE.findall(line) if (match := _FILE.match(code))]
    for path, runs in named:
        if (
            "*" in path
            or ".." in path
            or re.search(r"(?i)(^|/)(my|your|path|example|foo|some)", path)
        ):
            continue
        folder = file.path.rpartition("/")[0]
        candidates = {path, f"{folder}/{path}" if folder else path}
        if candidates & facts.paths or any(known.endswith(f"/{path}") for known in facts.paths):
            continue
        # A path in text is a claim only if its first folder exists: others name files of the reader.
        if runs or path.split("/")[0] in facts.paths:
            yield MISSING_PATH.at(file, number, f"{path} does not exist.", confidence=0.8)


def _routes(file: SourceFile, number: int, line: str, facts: _Facts) -> Iterator[Finding]:
    for match in _ROUTE.finditer(line):
        if not facts.routes:
            return
        path = plain_path(match[2])
        fitting = [one for one in facts.routes if _fits(one.path, path)]
        same = [one for one in fitting if one.method in (match[1], "*")]
        if not same and len(path) > 1 and "..." not in path and "…" not in path:
            known = ", ".join(sorted({one.method for one in fitting}))
            why = f"has only {known}" if fitting else "does not exist"
            yield ROUTE.at(
                file,
                number,
                f"{match[1]} {match[2]} is documented, but {path} {why}.",
                confidence=0.8,
            )
        limit = _LIMIT.search(line)
        bounds = {bound for one in same for bound in one.bounds}
        if limit and bounds and int(re.sub(r"\D", "", limit[1])) not in bounds:
            text = f"The text says {limit[1]}; the interface allows {', '.join(str(one) for one in sorted(bounds))}."
            yield LIMIT.at(file, number, text, confidence=0.7)


def _fits(served: str, written: str) -> bool:
    """Whether two paths may be one: equal, or one ends with the other, as with a prefix."""
    if served == written:
        return True
    one, other = _concrete(served), _concrete(written)
    return one == other or one.endswith(other) or other.endswith(one)


def _concrete(path: str) -> str:
    """Numbers and words in capitals in the place of parameters count as parameters."""
    return re.sub(r"/(\d+|[A-Z_]{2,}|\{\})(?=/|$)", "/{}", path)


def _ports(file: SourceFile, number: int, line: str, facts: _Facts) -> Iterator[Finding]:
    for match in _PORT.finditer(line):
        port = int(match[1] or match[2])
        if not 0 < port < 65_536 or not facts.ports or port in facts.ports:
            continue
        if port in (22, 25, 53, 80, 443, 465, 587, 3306, 5432, 6379, 27017):
            continue  # ports of other programs
        if re.search(r"(?i)for example|e\.g\.|such as|instead|-p \d|--port", line):
            continue
        near = ", ".join(str(one) for one in sorted(facts.ports)[:3])
        text = f"Port {port} stands in no setting and no code, which have {near}."
        yield PORT.at(file, number, text, confidence=0.7)


def _names(file: SourceFile, number: int, line: str, facts: _Facts) -> Iterator[Finding]:
    for code in _CODE.findall(line):
        match = _DOTTED.match(code)
        if match is None:
            continue
        dotted = match[1]
        module_name, _, name = dotted.rpartition(".")
        module = facts.modules.get(module_name)
        if module is None or name in _public(module) or f"{module_name}.{name}" in facts.modules:
            continue
        if any(known.startswith(f"{dotted}.") for known in facts.modules):
            continue
        yield SYMBOL.at(file, number, f"{module.file.path} has no {name}.", confidence=0.85)


def _public(module: PythonModule) -> set[str]:
    """The names that a module has; every name, if it makes them at run time."""
    if re.search(r"def __getattr__|globals\(\)|import \*", module.file.text):
        return _Everything()
    found: set[str] = set()
    for node in ast.walk(module.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.alias):
            found.add((node.asname or node.name).split(".")[0])
    return found


class _Everything(set[str]):
    """A set that holds every name."""

    def __contains__(self, name: object) -> bool:
        return True


DOCUMENTS = Detector(
    "documents",
    "Compares documents with the paths, routes, ports, limits and names of the code.",
    _detect,
    RULES,
)
