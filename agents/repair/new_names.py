"""Names that a change brings into a file: only known harmless ones are allowed.

A patch that is accepted by tests runs while they run, so it must not be able to reach the tests, the
runner, the environment or the code of the checker. What is not listed here is refused, not only what is
known to cheat.
"""

import ast
import builtins
import sys
from collections import Counter
from collections.abc import Collection

from agents.detectors.audit.python_module import PythonModule

_BUILTINS = frozenset(
    ["abs", "all", "any", "bool", "bytes", "bytearray",
     "dict", "divmod", "enumerate", "filter", "float", "frozenset",
     "int", "isinstance", "issubclass", "iter", "len", "list",
     "map", "max", "min", "next", "object", "pow", "range",
     "repr", "reversed", "round", "set", "slice", "sorted", "str", "sum", "super", "tuple", "zip",
     "ArithmeticError", "FileNotFoundError", "IndexError", "KeyError", "LookupError", "OSError",
     "OverflowError", "PermissionError", "RuntimeError", "StopIteration", "TypeError", "UnicodeDecodeError",
     "UnicodeError", "ValueError", "ZeroDivisionError", "Exception"]
)  # fmt: skip
_MODULES = frozenset(
    ["abc", "ast.literal_eval", "bisect", "collections", "copy.copy", "copy.deepcopy", "datetime.UTC",
     "datetime.timezone", "datetime.timedelta", "decimal", "defusedxml",
     "enum", "fractions", "functools", "hashlib",
     "hmac", "html", "itertools", "json", "markupsafe",
     "math", "numbers", "operator",
     "os.path.abspath", "os.path.basename", "os.path.commonpath", "os.path.join",
     "os.path.normpath", "os.path.realpath", "pathlib.PurePath",
     "pathlib.PurePosixPath", "re", "secrets", "shlex", "statistics", "string", "tempfile.NamedTemporaryFile",
     "tempfile.TemporaryDirectory", "tempfile.mkdtemp", "tempfile.mkstemp", "typing", "unicodedata",
     "urllib.parse", "yaml.SafeLoader", "yaml.safe_load", "zoneinfo"]
)  # fmt: skip
"""Dotted names and all beneath them."""


def new_name(before: PythonModule, after: PythonModule, project: Collection[str]) -> str:
    """The first name that `after` uses more often than `before` and that is not harmless; empty if none.

    Args:
        before: the file before the change.
        after: the file after it.
        project: names of the project's own modules and packages at the top.
    """
    for name in _bound(after) - _bound(before):
        if hasattr(builtins, name) or name in before.imports:
            return f"a new meaning of {name}"
    for name, source in after.imports.items():
        taken = hasattr(builtins, name) or name in before.imports or name in _bound(before)
        if taken and before.imports.get(name) != source:
            return f"a new meaning of {name}"
    known, used = _references(before), _references(after)
    for name, count in used.items():
        if count > known[name] and not _harmless(name, project):
            return name
    return ""


def _harmless(name: str, project: Collection[str]) -> bool:
    if name.startswith("."):
        return True  # relative imports are the project's own
    name = name.removeprefix("import ")
    root, _, rest = name.partition(".")
    if root == "builtins":
        return rest.partition(".")[0] in _BUILTINS
    if root in project and root not in sys.stdlib_module_names:
        return True
    parts = name.split(".")
    return any(".".join(parts[:end]) in _MODULES for end in range(1, len(parts) + 1))


def _references(module: PythonModule) -> Counter[str]:
    """Dotted names of imports, builtins, special attributes, and what has effects without a name."""
    found: Counter[str] = Counter()
    bound = _bound(module)
    for node in module.nodes:
        if isinstance(node, ast.Import):
            found.update(f"import {one.name}" for one in node.names if _unlisted_import(one.name))
        elif isinstance(node, ast.ImportFrom):
            source = "." * node.level + (node.module or "")
            found.update(f"{source}.{one.name}" for one in node.names)
        elif isinstance(node, ast.Attribute):
            if node.attr.startswith("__"):
                found[f"attribute.{node.attr}"] += 1
            if isinstance(module.parent.get(node), ast.Attribute):
                continue
            if isinstance(node.ctx, ast.Store | ast.Del) and _root(node) in module.imports:
                found[f"assignment.{module.qualified(node)}"] += 1
            name = _dotted(module, node, bound)
            if name:
                found[name] += 1
        elif isinstance(node, ast.Name) and not isinstance(module.parent.get(node), ast.Attribute):
            name = _dotted(module, node, bound)
            if name:
                found[name] += 1
        elif isinstance(node, ast.Global | ast.Nonlocal):
            found.update(f"global.{name}" for name in node.names)
    return found


def _unlisted_import(name: str) -> bool:
    """Whether importing a module is remarkable by itself; harmless uses are judged where they are."""
    return not any(one == name or one.startswith(f"{name}.") for one in _MODULES)


def _root(node: ast.AST) -> str:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _dotted(module: PythonModule, node: ast.Name | ast.Attribute, bound: set[str]) -> str:
    """The dotted name of an imported thing or a builtin; empty for names of the file's own."""
    root = _root(node)
    if root in module.imports:
        return module.qualified(node) or ""
    if root and root not in bound and (hasattr(builtins, root) or root.startswith("__")):
        return f"builtins.{module.qualified(node)}"
    return ""


def _bound(module: PythonModule) -> set[str]:
    """Names that the file itself binds somewhere, imports left out."""
    found = set()
    for node in module.nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store | ast.Del):
            found.add(node.id)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.arg):
            found.add(node.arg)
        elif isinstance(node, ast.ExceptHandler) and node.name:
            found.add(node.name)
    return found
