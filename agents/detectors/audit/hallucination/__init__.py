"""Claims that nothing supports: imports, names, paths and quotes that do not exist."""

import ast
import importlib
import importlib.util
import re
import sys
from collections.abc import Iterator
from functools import cache
from importlib import metadata

from agents.api.finding import Finding, Severity
from agents.detectors.audit.hallucination.packages import packages
from agents.detectors.audit.per_file import python_files
from agents.detectors.audit.python_module import PythonModule, module_of, own_nodes
from agents.detectors.detector import Detector, DetectorContext, Rule
from agents.workspace.source_file import SourceFile
from agents.workspace.workspace import Workspace

_LOW, _MEDIUM, _HIGH = Severity.LOW, Severity.MEDIUM, Severity.HIGH
UNKNOWN_IMPORT = Rule("unknown-import", _HIGH, "Import that does not exist", cwe=1357)
UNKNOWN_NAME = Rule("unknown-name", _HIGH, "Name that the module does not have", cwe=628)
MISSING_PATH = Rule("missing-path", _MEDIUM, "Path that does not exist", cwe=1059)
UNSUPPORTED = Rule("unsupported-quote", _MEDIUM, "Quote that the source does not have")
RULES = (UNKNOWN_IMPORT, UNKNOWN_NAME, MISSING_PATH, UNSUPPORTED)


def _detect(workspace: Workspace, context: DetectorContext) -> Iterator[Finding]:
    local = _local_modules(workspace)
    declared = _declared(workspace)
    for module in python_files(workspace, context):
        yield from _imports(module, local, declared, workspace)
        yield from _attributes(module)
    yield from _entry_points(workspace)
    for file in workspace.of("markdown"):
        context.check_cancelled()
        yield from _links(file, workspace)


def _local_modules(workspace: Workspace) -> set[str]:
    """Top-level names that the workspace itself can satisfy, from any folder."""
    names: set[str] = set()
    for file in workspace.of("python"):
        for part in file.path.removesuffix(".py").removesuffix(".pyi").split("/"):
            names.add(part)
    names |= {part for one in workspace.skipped for part in one.path.split(".")[0].split("/")}
    return names


@cache
def _installed() -> frozenset[str]:
    return frozenset(metadata.packages_distributions())


def _declared(workspace: Workspace) -> str:
    texts = [
        file.text.lower().replace("_", "-")
        for file in workspace
        if re.search(
            r"(requirements[^/]*\.txt|pyproject\.toml|setup\.(py|cfg)|environment\.ya?ml|Pipfile)$",
            file.path,
        )
    ]
    return "\n".join(texts)


def _exists(top: str, local: set[str], declared: str) -> bool:
    plain = packages().aliases.get(top, top).lower().replace("_", "-")
    known = (
        top in sys.stdlib_module_names or top in local or top in _installed() or top == "__main__"
    )
    return known or (
        bool(declared) and re.search(rf"(?<![a-z0-9]){re.escape(plain)}", declared) is not None
    )


def _imports(
    module: PythonModule, local: set[str], declared: str, workspace: Workspace
) -> Iterator[Finding]:
    imports = [one for one in module.nodes if isinstance(one, ast.Import | ast.ImportFrom)]
    for node in imports:
        if any(isinstance(one, ast.Try) for one in module.ancestors(node)):
            continue  # an optional dependency
        if isinstance(node, ast.ImportFrom):
            if node.level:
                yield from _relative_import(module, node, workspace)
                continue
            yield from _own_names(module, node, node.module or "", workspace)
            name = node.module or ""
            if name.split(".")[0] in sys.stdlib_module_names:
                yield from _stdlib_names(module, node, name)
            names = [name]
        else:
            names = [one.name for one in node.names]
        for name in names:
            top = name.split(".")[0]
            if name in sys.stdlib_module_names or _stdlib_submodule(name):
                continue
            if top in sys.stdlib_module_names:
                text = f"The standard library has no module {name}."
                yield UNKNOWN_IMPORT.at(module.file, node.lineno, text)
            elif not _exists(top, local, declared):
                text = f"No module {top} is known: not of the standard library, declared, installed or in this code."
                confidence = 0.8 if declared else 0.5
                severity = _HIGH if declared and top not in packages().well_known else _LOW
                yield UNKNOWN_IMPORT.at(
                    module.file, node.lineno, text, confidence=confidence, severity=severity
                )


def _relative_import(
    module: PythonModule, node: ast.ImportFrom, workspace: Workspace
) -> Iterator[Finding]:
    """`from .formatters import table` where the package has no module formatters."""
    package = module.file.path.split("/")[:-1]
    if node.level - 1 > len(package):
        return
    base = package[: len(package) - (node.level - 1)]
    target = "/".join([*base, *(node.module.split(".") if node.module else [])])
    found = _module_file(target, workspace)
    if (
        found is None
        and node.module
        and not _is_folder(target, workspace)
        and not _is_built(target, workspace)
    ):
        text = f"The package has no module {node.module}."
        yield UNKNOWN_IMPORT.at(module.file, node.lineno, text)
    elif found is not None:
        yield from _missing_names(module, node, found, target, workspace)


def _own_names(
    module: PythonModule, node: ast.ImportFrom, name: str, workspace: Workspace
) -> Iterator[Finding]:
    """`from package.module import name` where the workspace has the module, but not the name."""
    for prefix in ("", "src/"):
        target = prefix + name.replace(".", "/")
        found = _module_file(target, workspace)
        if found is not None:
            yield from _missing_names(module, node, found, target, workspace)
            return


def _module_file(target: str, workspace: Workspace) -> SourceFile | None:
    paths = (f"{target}.py", f"{target}/__init__.py") if target else ("__init__.py",)
    return next((one for path in paths if (one := workspace.get(path)) is not None), None)


def _is_folder(target: str, workspace: Workspace) -> bool:
    return any(file.path.startswith(f"{target}/") for file in workspace)


def _is_built(target: str, workspace: Workspace) -> bool:
    """Whether a compiled or generated module may satisfy the import: a stub, or a file that was left out."""
    return (
        workspace.get(f"{target}.pyi") is not None
        or any(one.path.startswith(f"{target}.") for one in workspace.skipped)
        or re.search(r"(^|/)_?(version|core|native|speedups|ext|generated|\w+_pb2\w*)$", target)
        is not None
    )


def _missing_names(
    module: PythonModule, node: ast.ImportFrom, found: SourceFile, target: str, workspace: Workspace
) -> Iterator[Finding]:
    known = module_of(found)
    if known is None or re.search(
        r"__getattr__|globals\(\)|import \*|sys\.modules|__all__ \+=", found.text
    ):
        return
    names = _defined(known)
    for one in node.names:
        below = f"{target}/{one.name}" if found.path.endswith("__init__.py") else ""
        is_module = bool(below) and (
            _module_file(below, workspace) is not None
            or _is_folder(below, workspace)
            or _is_built(below, workspace)
        )
        if one.name != "*" and one.name not in names and not is_module:
            yield UNKNOWN_NAME.at(module.file, node.lineno, f"{found.path} has no {one.name}.")


def _defined(module: PythonModule) -> set[str]:
    """The names that a module binds anywhere outside of its functions and classes."""
    found = set(module.imports)
    for node in own_nodes(module.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.MatchAs | ast.ExceptHandler) and node.name:
            found.add(node.name)
    return (
        found
        | {name for node in module.of(ast.Global) for name in node.names}
        | {"__doc__", "__name__", "__file__", "__path__"}
    )


_SCRIPTS = re.compile(
    r"^\s*[\"']?[\w.-]+[\"']?\s*=\s*[\"']([A-Za-z_][\w.]*):([A-Za-z_]\w*)[\w.]*[\"']"
)


def _entry_points(workspace: Workspace) -> Iterator[Finding]:
    """Scripts in `pyproject.toml` and `setup.cfg` whose function does not exist."""
    for name in ("pyproject.toml", "setup.cfg"):
        file = workspace.get(name)
        for number, line in enumerate(file.lines, 1) if file is not None else ():
            match = _SCRIPTS.match(line)
            if match is None or file is None:
                continue
            for prefix in ("", "src/"):
                target = prefix + match[1].replace(".", "/")
                found = _module_file(target, workspace)
                if found is None:
                    continue
                known = module_of(found)
                if (
                    known is not None
                    and match[2] not in _defined(known)
                    and "import *" not in found.text
                ):
                    yield UNKNOWN_NAME.at(file, number, f"{found.path} has no {match[2]}.")
                break
            else:
                if _is_folder(match[1].split(".")[0], workspace):
                    yield UNKNOWN_IMPORT.at(file, number, f"There is no module {match[1]}.")


@cache
def _stdlib_submodule(name: str) -> bool:
    """Whether this is a submodule of the standard library; its packages' folders are looked at."""
    top = name.split(".")[0]
    if "." not in name or top not in sys.stdlib_module_names:
        return False
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError, AttributeError):
        return False


@cache
def _names_of(module: str) -> frozenset[str]:
    """Names of a module that may be imported without effects; empty for others."""
    if module not in packages().inspected:
        return frozenset()
    return frozenset(dir(importlib.import_module(module)))


def _stdlib_names(module: PythonModule, node: ast.ImportFrom, name: str) -> Iterator[Finding]:
    known = _names_of(name)
    for one in node.names if known else ():
        if (
            one.name != "*"
            and one.name not in known
            and not _stdlib_submodule(f"{name}.{one.name}")
        ):
            yield UNKNOWN_NAME.at(module.file, node.lineno, f"{name} has no {one.name}.")


def _attributes(module: PythonModule) -> Iterator[Finding]:
    rebound = {one.id for one in module.of(ast.Name) if isinstance(one.ctx, ast.Store)} | {
        argument.arg
        for function in module.functions
        for argument in ast.walk(function.args)
        if isinstance(argument, ast.arg)
    }
    modules = {
        name: target
        for name, target in module.imports.items()
        if target in packages().inspected and name not in rebound
    }
    for node in module.of(ast.Attribute):
        if not isinstance(node.value, ast.Name) or not isinstance(node.ctx, ast.Load):
            continue
        target = modules.get(node.value.id)
        if (
            target is None
            or node.attr in _names_of(target)
            or _stdlib_submodule(f"{target}.{node.attr}")
        ):
            continue
        if (
            any(isinstance(one, ast.Try) for one in module.ancestors(node))
            or f'"{node.attr}"' in module.file.text
        ):
            continue
        if re.search(rf"hasattr\(\s*{node.value.id}", module.file.text):
            continue
        yield UNKNOWN_NAME.at(module.file, node.lineno, f"{target} has no {node.attr}.")


_LINK = re.compile(r"\[[^\]]*\]\(([^)\s#]+)(?:#[^)]*)?\)")


def _links(file: SourceFile, workspace: Workspace) -> Iterator[Finding]:
    folder = file.path.rpartition("/")[0]
    fenced = False
    for number, line in enumerate(file.lines, 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        for target in () if fenced else _LINK.findall(line):
            if re.match(r"[a-z][a-z0-9+.-]*:|//|/|mailto:|<|\{", target, re.I):
                continue
            parts = [*(folder.split("/") if folder else []), *target.split("/")]
            resolved: list[str] = []
            for part in parts:
                if part == "..":
                    resolved = resolved[:-1]
                elif part not in ("", "."):
                    resolved.append(part)
            path = "/".join(resolved)
            known = workspace.get(path) is not None or any(
                one.path.startswith(f"{path}/") for one in workspace
            )
            skipped = any(
                one.path == path or one.path.startswith(f"{path}/") for one in workspace.skipped
            )
            outside = target.count("../") > (folder.count("/") + 1 if folder else 0)
            if not known and not skipped and not outside and path:
                yield MISSING_PATH.at(file, number, f"{target[:120]} does not exist.")


HALLUCINATION = Detector(
    "hallucination",
    "Checks that imports, names of the standard library and linked paths exist.",
    _detect,
    RULES,
)
