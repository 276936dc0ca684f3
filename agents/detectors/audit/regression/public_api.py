"""The difference of a Python project's public interface between two states of its tree."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from agents.api.finding import Finding, Severity
from agents.detectors.audit.python_module import is_test_path, shape
from agents.detectors.detector import DetectorContext, Rule
from agents.workspace.source_file import SourceFile
from agents.workspace.workspace import Workspace

API_REMOVED = Rule("api-removed", Severity.HIGH, "public name removed or renamed")
PARAMETER_REMOVED = Rule("parameter-removed", Severity.HIGH, "parameter removed or renamed")
PARAMETER_REQUIRED = Rule("parameter-required", Severity.HIGH, "new parameter without a default")
PARAMETER_ORDER = Rule("parameter-order", Severity.HIGH, "positional parameters in another order")
DEFAULT_CHANGED = Rule("default-changed", Severity.MEDIUM, "default value changed")
EXCEPTIONS_CHANGED = Rule("exceptions-changed", Severity.MEDIUM, "other exceptions raised")
ASYNC_CHANGED = Rule("async-changed", Severity.HIGH, "function became or stopped being async")
RETURN_CHANGED = Rule("return-changed", Severity.MEDIUM, "declared return type changed")
CONSTANT_CHANGED = Rule("constant-changed", Severity.LOW, "value of a public constant changed")

RULES = (
    API_REMOVED, PARAMETER_REMOVED, PARAMETER_REQUIRED, PARAMETER_ORDER, DEFAULT_CHANGED,
    EXCEPTIONS_CHANGED, ASYNC_CHANGED, RETURN_CHANGED, CONSTANT_CHANGED,
)  # fmt: skip


@dataclass(slots=True)
class Signature:
    """A public function, class or constant."""

    kind: str
    line: int
    positional: list[str] = field(default_factory=list)
    defaults: dict[str, str | None] = field(default_factory=dict)
    open_ended: bool = False
    raises: set[str] = field(default_factory=set)
    returns: str = ""
    value: str = ""


def public_names(file: SourceFile) -> dict[str, Signature]:
    """The public names of a module by their dotted path, methods included."""
    found: dict[str, Signature] = {}
    work: list[tuple[str, Any]] = [("", file.python)]
    while work:
        prefix, scope = work.pop()
        for node in getattr(scope, "body", ()):
            name = getattr(node, "name", "")
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                if not name.startswith("_") or name in ("__init__", "__call__"):
                    found[prefix + name] = _function(node)
            elif isinstance(node, ast.ClassDef) and not name.startswith("_"):
                found[prefix + name] = Signature("class", node.lineno)
                work.append((f"{prefix}{name}.", node))
            elif isinstance(node, ast.If | ast.Try):
                work.append((prefix, node))
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                for target in targets:
                    if isinstance(target, ast.Name) and not target.id.startswith("_"):
                        value = shape(node.value) if node.value is not None else ""
                        found[prefix + target.id] = Signature("constant", node.lineno, value=value)
            elif isinstance(node, ast.ImportFrom | ast.Import) and not prefix:
                for alias in node.names:
                    found.setdefault(alias.asname or alias.name, Signature("import", node.lineno))
    return found


def _function(node: ast.FunctionDef | ast.AsyncFunctionDef) -> Signature:
    arguments = node.args
    plain = [*arguments.posonlyargs, *arguments.args]
    defaults: dict[str, str | None] = {one.arg: None for one in (*plain, *arguments.kwonlyargs)}
    for one, default in zip(plain[::-1], arguments.defaults[::-1], strict=False):
        defaults[one.arg] = shape(default)
    for one, given in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        defaults[one.arg] = shape(given) if given is not None else None
    raises = {
        shape(inner.exc.func if isinstance(inner.exc, ast.Call) else inner.exc)
        for inner in ast.walk(node)
        if isinstance(inner, ast.Raise) and inner.exc is not None
    }
    return Signature(
        "async function" if isinstance(node, ast.AsyncFunctionDef) else "function",
        node.lineno,
        [one.arg for one in plain],
        defaults,
        arguments.vararg is not None or arguments.kwarg is not None,
        {name for name in raises if name[:1].isupper()},
        shape(node.returns) if node.returns is not None else "",
    )


def api_changes(
    base: Workspace, workspace: Workspace, context: DetectorContext
) -> Iterator[Finding]:
    """Findings about public names that callers may rely on."""
    unlisted: set[str] = set()
    for old in base.of("python"):
        new = workspace.get(old.path)
        if new is None or new.python is None or old.python is None or is_test_path(old.path):
            continue
        listed, (now, line) = _listed_names(old)[0], _listed_names(new)
        gone = sorted(listed - now) if now else []
        unlisted |= set(gone)
        if gone:
            message = f"The package no longer offers {', '.join(gone)[:200]}."
            yield API_REMOVED.at(new, line, message)
    for old in base.of("python"):
        context.check_cancelled()
        if (
            is_test_path(old.path)
            or old.python is None
            or "/_" in f"/{old.path}".replace("/__init__", "")
        ):
            continue
        new = workspace.get(old.path)
        if new is None:
            names = [name for name, one in public_names(old).items() if one.kind != "import"]
            if names:
                yield _at_file(old, f"The module is gone, with {', '.join(names)[:200]}.")
            continue
        if new.python is None or new.data == old.data:
            continue
        before, after = public_names(old), public_names(new)
        for name, one in before.items():
            if after.get(name) is None and name in unlisted:
                continue  # reported where the package lists its names
            yield from _compare(new, name, one, after.get(name))


def _listed_names(file: SourceFile) -> tuple[set[str], int]:
    """The names in `__all__` of a module, and its line; empty and 0 without one that is a plain list."""
    for node in file.python.body if file.python is not None else ():
        if isinstance(node, ast.Assign) and any(
            shape(target) == "__all__" for target in node.targets
        ):
            if isinstance(node.value, ast.List | ast.Tuple):
                constants = [one.value for one in node.value.elts if isinstance(one, ast.Constant)]
                return {one for one in constants if isinstance(one, str)}, node.lineno
    return set(), 0


def _at_file(file: SourceFile, message: str) -> Finding:
    return API_REMOVED.at(file, 0, message, evidence=file.path)


def _compare(
    file: SourceFile, name: str, old: Signature, new: Signature | None
) -> Iterator[Finding]:
    if new is None:
        if old.kind == "import" or name.rsplit(".", 1)[-1].startswith("__"):
            return
        message = f"The public {old.kind} {name:.80} was removed or renamed."
        yield API_REMOVED.at(file, 0, message, evidence=f"{old.kind} {name}")
        return
    if "function" not in old.kind or "function" not in new.kind:
        if (
            old.kind == new.kind == "constant"
            and old.value != new.value
            and name.rsplit(".", 1)[-1].isupper()
        ):
            yield CONSTANT_CHANGED.at(
                file, new.line, f"{name:.80} was {old.value:.60} and is {new.value:.60}."
            )
        return
    if old.kind != new.kind:
        yield ASYNC_CHANGED.at(file, new.line, f"{name:.80} was an {old.kind} and is a {new.kind}.")
    gone = [one for one in old.defaults if one not in new.defaults and one not in ("self", "cls")]
    if gone and not new.open_ended:
        yield PARAMETER_REMOVED.at(
            file, new.line, f"{name:.80} has no parameter {', '.join(gone):.80} any more."
        )
    required = [
        one for one, default in new.defaults.items() if default is None and one not in old.defaults
    ]
    if required and not old.open_ended and len(required) > len(gone):
        yield PARAMETER_REQUIRED.at(
            file, new.line, f"Callers of {name:.80} must now pass {', '.join(required):.80}."
        )
    lost = [
        one
        for one, d in old.defaults.items()
        if d is not None and one in new.defaults and new.defaults[one] is None
    ]
    if lost:
        yield PARAMETER_REQUIRED.at(
            file, new.line, f"{', '.join(lost):.80} of {name:.80} has no default any more."
        )
    common = [one for one in old.positional if one in new.positional]
    if common != [one for one in new.positional if one in old.positional]:
        yield PARAMETER_ORDER.at(
            file, new.line, f"The parameters of {name:.80} are in another order."
        )
    for one, default in old.defaults.items():
        changed = new.defaults.get(one)
        if default is not None and changed is not None and default != changed:
            yield DEFAULT_CHANGED.at(
                file,
                new.line,
                f"The default of {one:.60} in {name:.80} was {default:.60}, is {changed:.60}.",
            )
    if old.raises != new.raises and old.raises:
        gone_text = ", ".join(sorted(old.raises - new.raises))
        added = ", ".join(sorted(new.raises - old.raises))
        text = " and ".join(
            part
            for part in (
                f"no longer raises {gone_text}" if gone_text else "",
                f"now raises {added}" if added else "",
            )
            if part
        )
        yield EXCEPTIONS_CHANGED.at(file, new.line, f"{name:.80} {text:.200}.")
    if old.returns and new.returns and old.returns != new.returns:
        yield RETURN_CHANGED.at(
            file, new.line, f"{name:.80} returned {old.returns:.60} and returns {new.returns:.60}."
        )
