"""`with_imports`: code with the imports of the standard library that it uses and forgot.

A model that writes `math.sqrt` or `Counter(...)` without an import has forgotten it far more often than it
means something else. Only names that the code binds nowhere are looked at.
"""

import ast
import builtins
from collections.abc import Collection

_MODULES = frozenset([
    "abc", "ast", "asyncio", "base64", "bisect", "calendar", "collections", "contextlib", "copy", "csv",
    "dataclasses", "datetime", "decimal", "enum", "fractions", "functools", "hashlib", "heapq", "io",
    "itertools", "json", "logging", "math", "operator", "os", "pathlib", "random", "re",
    "statistics", "string", "struct",
    "sys", "textwrap", "time", "typing", "unicodedata", "uuid",
])  # fmt: skip
_NAMES = {
    **dict.fromkeys(["Counter", "OrderedDict", "defaultdict", "deque", "namedtuple"], "collections"),
    **dict.fromkeys(["Any", "Callable", "Dict", "Iterable", "Iterator", "List", "Optional", "Sequence", "Set",
                     "Tuple", "Union"], "typing"),
    **dict.fromkeys(["ceil", "factorial", "floor", "gcd", "isqrt", "sqrt"], "math"),
    **dict.fromkeys(["accumulate", "chain", "combinations", "groupby", "permutations", "zip_longest"],
                    "itertools"),
    **dict.fromkeys(["cache", "lru_cache", "partial", "reduce", "wraps"], "functools"),
    **dict.fromkeys(["dataclass", "field"], "dataclasses"),
    **dict.fromkeys(["Decimal", "ROUND_HALF_UP"], "decimal"),
    **dict.fromkeys(["date", "timedelta", "timezone"], "datetime"),
    **dict.fromkeys(["heappop", "heappush", "heapify"], "heapq"),
    "Enum": "enum", "Fraction": "fractions", "Path": "pathlib", "contextmanager": "contextlib",
    "deepcopy": "copy", "md5": "hashlib", "sha256": "hashlib",
}  # fmt: skip


def with_imports(code: str, known: Collection[str] = ()) -> str:
    """The code below the imports that it lacks; the code itself if it lacks none or does not parse.

    Args:
        code: a module, or a part of one. A comment in its first line stays there.
        known: names that the place where it goes has.
    """
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return code
    missing = _loaded(tree) - bound_names(tree) - set(known) - set(dir(builtins))
    lines = [f"import {name}" for name in sorted(missing & _MODULES)]
    lines += [f"from {_NAMES[name]} import {name}" for name in sorted(missing & _NAMES.keys())]
    if not lines:
        return code
    head = _head_lines(tree)
    if head:
        given = code.split("\n")
        return "\n".join([*given[:head], *lines, *given[head:]])
    first, rest = code.partition("\n")[::2]
    if first.startswith("#"):
        return "\n".join([first, *lines, "", rest])
    return "\n".join([*lines, "", "", code])


def _head_lines(tree: ast.Module) -> int:
    """The lines of what stands above all imports: a docstring and imports from `__future__`."""
    last = 0
    for at, node in enumerate(tree.body):
        match node:
            case ast.Expr(value=ast.Constant(value=str())) if at == 0:
                last = node.end_lineno or 0
            case ast.ImportFrom(module="__future__"):
                last = node.end_lineno or 0
            case _:
                break
    return last


def bound_names(tree: ast.AST) -> set[str]:
    """All names that a tree binds anywhere: assignments, arguments, definitions, imports."""
    found: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()) | ast.arg(arg=name):
                found.add(name)
            case (
                ast.FunctionDef(name=name)
                | ast.AsyncFunctionDef(name=name)
                | ast.ClassDef(name=name)
            ):
                found.add(name)
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                found |= {(one.asname or one.name).partition(".")[0] for one in names}
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)):
                found.add(name)
            case ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name)):
                found.add(name)
    return found


def _loaded(tree: ast.AST) -> set[str]:
    return {
        node.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    }
