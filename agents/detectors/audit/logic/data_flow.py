"""Values that go the wrong way: off by one, shared, overwritten, changed while iterated, never awaited."""

import ast
import builtins
from collections.abc import Iterator

from agents.api.finding import Finding
from agents.detectors.audit.python_module import (
    FunctionNode,
    PythonModule,
    bound_names,
    decorator_names,
    is_test_path,
    names_in,
    own_nodes,
    parameters,
    shape,
)
from agents.detectors.rule_file import RuleEntry, RuleFile

RULES = RuleFile(__file__, "data_flow", entry=RuleEntry)


_CHANGES = frozenset([
    "append", "extend", "insert", "remove", "pop", "popitem", "clear", "add", "discard", "update", "setdefault",
])  # fmt: skip
_RESIZES = frozenset(
    ["append", "extend", "insert", "remove", "pop", "popitem", "clear", "add", "discard"]
)


def check_data_flow(module: PythonModule) -> Iterator[Finding]:
    """Findings about the values of a module."""
    for node in module.nodes:
        if isinstance(node, ast.For | ast.AsyncFor):
            yield from _index_range(module, node)
            yield from _changed_while_iterated(module, node)
            yield from _rebound(module, node)
        elif isinstance(node, ast.While):
            yield from _while_index(module, node)
        elif isinstance(node, ast.ClassDef):
            yield from _shared_attributes(module, node)
        elif isinstance(node, ast.Assign):
            yield from _assignment(module, node)
        elif isinstance(node, ast.Expr):
            yield from _ignored(module, node)
        elif isinstance(node, ast.Subscript):
            yield from _index_of_length(module, node)
        elif isinstance(node, ast.Try):
            for statement in node.finalbody:
                if isinstance(statement, ast.Return | ast.Break | ast.Continue):
                    yield RULES["return-in-finally"].at(module.file, statement.lineno)
    for function in module.functions:
        yield from _defaults(module, function)
        yield from _overwritten(module, function)
        yield from _shadowed(module, function)
        yield from _percentages(module, function)
    yield from _late_binding(module)
    yield from _missing_await(module)


def _length_of(node: ast.AST) -> str | None:
    """The shape of x in `len(x)`."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "len":
        return shape(node.args[0]) if len(node.args) == 1 else None
    return None


def _offset_of_length(node: ast.AST) -> tuple[str, int] | None:
    """`(x, k)` for `len(x) + k`."""
    plain = _length_of(node)
    if plain is not None:
        return plain, 0
    if isinstance(node, ast.BinOp) and isinstance(node.right, ast.Constant):
        name, value = _length_of(node.left), node.right.value
        if name is not None and isinstance(value, int):
            if isinstance(node.op, ast.Add | ast.Sub):
                return name, value if isinstance(node.op, ast.Add) else -value
    return None


def _index_range(module: PythonModule, node: ast.For | ast.AsyncFor) -> Iterator[Finding]:
    call = node.iter
    if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name)):
        return
    if (
        call.func.id != "range"
        or not 1 <= len(call.args) <= 2
        or not isinstance(node.target, ast.Name)
    ):
        return
    end = _offset_of_length(call.args[-1])
    start = (
        call.args[0].value if len(call.args) == 2 and isinstance(call.args[0], ast.Constant) else 0
    )
    if end is None:
        return
    name, offset = end
    index = node.target.id
    indexed = [
        inner
        for statement in node.body
        for inner in ast.walk(statement)
        if isinstance(inner, ast.Subscript) and shape(inner.value) == name
    ]
    plain = [one for one in indexed if shape(one.slice) == index]
    ahead = [one for one in indexed if shape(one.slice) == f"{index} + 1"]
    guarded = any(
        isinstance(inner, ast.If | ast.IfExp | ast.BoolOp) and index in names_in(inner)
        for statement in node.body
        for inner in ast.walk(statement)
    )
    if guarded:
        return
    if (offset >= 1 and plain) or (offset >= 0 and ahead):
        place = (plain if offset >= 1 and plain else ahead)[0]
        line = node.lineno if offset >= 1 else place.lineno
        yield RULES["off-by-one"].at(
            module.file, line, f"The last pass reads one past the end of {name:.60}.",
            end_line=max(line, place.lineno),
        )  # fmt: skip
    elif offset == -1 and plain and start == 0:
        others = [one for one in indexed if one not in plain]
        uses_index = any(
            isinstance(inner, ast.BinOp) and index in names_in(inner)
            for statement in node.body
            for inner in ast.walk(statement)
        )
        if not others and not uses_index:
            yield RULES["range-skips-last"].at(
                module.file,
                node.lineno,
                f"The last element of {name:.60} is left out.",
                confidence=0.7,
            )


def _while_index(module: PythonModule, node: ast.While) -> Iterator[Finding]:
    for test in ast.walk(node.test):
        if not isinstance(test, ast.Compare) or len(test.ops) != 1:
            continue
        if not isinstance(test.ops[0], ast.LtE) or not isinstance(test.left, ast.Name):
            continue
        name = _length_of(test.comparators[0])
        if name is None:
            continue
        index = test.left.id
        for statement in node.body:
            for inner in ast.walk(statement):
                if (
                    isinstance(inner, ast.Subscript)
                    and shape(inner.value) == name
                    and shape(inner.slice) == index
                ):
                    yield RULES["off-by-one"].at(
                        module.file, node.lineno, f"At its end {index} is one past the end of {name:.60}: use <."
                    )  # fmt: skip
                    return


def _index_of_length(module: PythonModule, node: ast.Subscript) -> Iterator[Finding]:
    name = _length_of(node.slice)
    if name is not None and name == shape(node.value) and isinstance(node.ctx, ast.Load):
        yield RULES["off-by-one"].at(
            module.file, node.lineno, f"The last index of {name:.60} is len - 1.", confidence=0.95
        )


def _changed_while_iterated(
    module: PythonModule, node: ast.For | ast.AsyncFor
) -> Iterator[Finding]:
    iterated = node.iter
    view = False
    if isinstance(iterated, ast.Call) and isinstance(iterated.func, ast.Attribute):
        if iterated.func.attr not in ("items", "keys", "values") or iterated.args:
            return
        iterated, view = iterated.func.value, True
    elif isinstance(iterated, ast.Call) and shape(iterated.func) == "enumerate" and iterated.args:
        iterated = iterated.args[0]
    if not isinstance(iterated, ast.Name | ast.Attribute):
        return
    name = shape(iterated)
    for statement in node.body:
        for inner in (statement, *own_nodes(statement)):
            changed = False
            if isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute):
                changed = inner.func.attr in _RESIZES and shape(inner.func.value) == name
            elif isinstance(inner, ast.Delete):
                changed = any(
                    isinstance(one, ast.Subscript) and shape(one.value) == name
                    for one in inner.targets
                )
            if changed and not _leaves_after(module, inner):
                what = "dictionary" if view else "container"
                yield RULES["changed-while-iterated"].at(
                    module.file,
                    getattr(inner, "lineno", node.lineno),
                    f"The {what} {name:.60} changes while the loop iterates over it: iterate over a copy.",
                )
                return


def _leaves_after(module: PythonModule, node: ast.AST) -> bool:
    """Whether a break or return follows in the same block."""
    statement = module.statement_of(node)
    parent = module.parent.get(statement)
    for field in ("body", "orelse", "finalbody"):
        block = getattr(parent, field, None) or []
        if isinstance(block, list) and statement in block:
            rest = block[block.index(statement) + 1 :]
            return any(isinstance(one, ast.Break | ast.Return | ast.Raise) for one in rest)
    return False


def _rebound(module: PythonModule, node: ast.For | ast.AsyncFor) -> Iterator[Finding]:
    outer = bound_names(node.target) - {"_", "__"}
    for statement in node.body:
        for inner in (statement, *own_nodes(statement)):
            if isinstance(inner, ast.For) and (again := outer & bound_names(inner.target)):
                yield RULES["loop-variable-rebound"].at(
                    module.file,
                    inner.lineno,
                    f"The inner loop overwrites {min(again)} of the loop on line {node.lineno}.",
                )


def _shared_attributes(module: PythonModule, node: ast.ClassDef) -> Iterator[Finding]:
    """A list, dict or set of the class that a method changes through `self` without rebinding it."""
    if any("dataclass" in name for name in decorator_names(module, node)):
        return
    shared: dict[str, ast.stmt] = {}
    for statement in node.body:
        target = None
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            target = statement.targets[0]
        elif isinstance(statement, ast.AnnAssign) and "ClassVar" not in shape(statement.annotation):
            target = statement.target
        value = getattr(statement, "value", None)
        if isinstance(target, ast.Name) and value is not None and _is_mutable(value):
            shared[target.id] = statement
    if not shared:
        return
    rebound: set[str] = set()
    changed: set[str] = set()
    for inner in ast.walk(node):
        if isinstance(inner, ast.Attribute) and shape(inner.value) == "self":
            parent = module.parent.get(inner)
            if isinstance(inner.ctx, ast.Store) and not isinstance(parent, ast.AugAssign):
                rebound.add(inner.attr)
            elif (
                (isinstance(parent, ast.Attribute) and parent.attr in _CHANGES)
                or (isinstance(parent, ast.Subscript) and not isinstance(parent.ctx, ast.Load))
                or isinstance(parent, ast.AugAssign)
            ):
                changed.add(inner.attr)
    for name in sorted((set(shared) & changed) - rebound):
        yield RULES["shared-class-attribute"].at(
            module.file,
            shared[name].lineno,
            f"All instances share {name}, and methods change it: create it in __init__.",
        )


def _is_mutable(node: ast.expr) -> bool:
    if isinstance(node, ast.List | ast.Dict | ast.Set | ast.ListComp | ast.DictComp | ast.SetComp):
        return True
    return isinstance(node, ast.Call) and shape(node.func) in (
        "list", "dict", "set", "defaultdict", "collections.defaultdict", "deque", "collections.deque",
        "bytearray", "Counter", "OrderedDict",
    )  # fmt: skip


def _defaults(module: PythonModule, function: FunctionNode) -> Iterator[Finding]:
    for default in [*function.args.defaults, *function.args.kw_defaults]:
        if default is not None and _is_mutable(default):
            yield RULES["mutable-default"].at(
                module.file,
                default.lineno,
                f"All calls of {function.name} share this default: use None and create it inside.",
            )


def _assignment(module: PythonModule, node: ast.Assign) -> Iterator[Finding]:
    function = module.function_of(node)
    for target in node.targets:
        if isinstance(target, ast.Name | ast.Attribute) and shape(target) == shape(node.value):
            if function is not None:
                yield RULES["self-assignment"].at(
                    module.file, node.lineno, f"{shape(target):.80} is assigned to itself."
                )
        elif (
            function is not None
            and function.name == "__init__"
            and isinstance(target, ast.Name)
            and shape(node.value) == f"self.{target.id}"
            and target.id in {one.arg for one in parameters(function)}
        ):
            yield RULES["assignment-direction"].at(
                module.file, node.lineno, f"Meant is self.{target.id} = {target.id}."
            )


_PURE_METHODS = frozenset([
    "strip", "lstrip", "rstrip", "lower", "upper", "title", "replace", "encode", "decode", "capitalize",
    "casefold", "swapcase", "zfill", "removeprefix", "removesuffix",
])  # fmt: skip


def _ignored(module: PythonModule, node: ast.Expr) -> Iterator[Finding]:
    value = node.value
    if isinstance(value, ast.Compare) and not is_test_path(module.file.path):
        if len(value.ops) == 1 and isinstance(value.ops[0], ast.Eq):
            yield RULES["ignored-result"].at(
                module.file,
                node.lineno,
            )
    if not isinstance(value, ast.Call):
        return
    name = module.call_name(value)
    if name in ("sorted", "reversed") and name not in module.imports:
        yield RULES["ignored-result"].at(
            module.file, node.lineno, f"{name} returns a new value, dropped here."
        )
    elif isinstance(value.func, ast.Attribute) and value.func.attr in _PURE_METHODS:
        if value.func.attr == "replace" and len(value.args) != 2:
            return
        receiver = shape(value.func.value)
        if receiver.rsplit(".", 1)[-1] in ("os", "path", "tmp", "temp") or module.qualified(
            value.func.value
        ) in ("os", "shutil"):
            return
        if (
            value.func.attr in ("title", "replace", "encode", "decode")
            and value.func.attr != "replace"
        ):
            return
        yield RULES["ignored-result"].at(
            module.file, node.lineno, f"Strings are immutable: the result of {value.func.attr} is dropped."
        )  # fmt: skip


def _overwritten(module: PythonModule, function: FunctionNode) -> Iterator[Finding]:
    """The first statement that mentions a parameter replaces it by a constant."""
    names = {one.arg for one in parameters(function)} - {"self", "cls", "_"}
    for statement in function.body:
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Constant):
            again = {t.id for t in statement.targets if isinstance(t, ast.Name)} & names
            if again and not any(name.startswith("_") for name in again):
                yield RULES["parameter-overwritten"].at(
                    module.file,
                    statement.lineno,
                    f"The parameter {min(again)} is replaced before it is read.",
                )
        names -= {one.id for one in ast.walk(statement) if isinstance(one, ast.Name)}


_BUILTINS = frozenset(dir(builtins))


def _shadowed(module: PythonModule, function: FunctionNode) -> Iterator[Finding]:
    """A built-in function that is bound as a variable and called in the same function."""
    bound: dict[str, int] = {}
    called: dict[str, int] = {}
    for node in own_nodes(function):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in _BUILTINS:
            parent = module.parent.get(node)
            value = getattr(parent, "value", None)
            if isinstance(value, ast.Lambda | ast.Name | ast.Attribute | ast.Call):
                continue  # may be callable
            bound.setdefault(node.id, node.lineno)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            called[node.func.id] = max(node.lineno, called.get(node.func.id, 0))
    for name, line in bound.items():
        if called.get(name, 0) > line:
            yield RULES["shadowed-builtin"].at(
                module.file, line, f"{name} is replaced here and called on line {called[name]}."
            )


_RATIO_NAMES = ("average", "mean", "ratio", "percent", "rate", "fraction", "probability")


def _percentages(module: PythonModule, function: FunctionNode) -> Iterator[Finding]:
    for node in own_nodes(function):
        if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.FloorDiv)):
            continue
        parent = module.parent.get(node)
        names = [function.name]
        if isinstance(parent, ast.Assign):
            names = [t.id for t in parent.targets if isinstance(t, ast.Name)]
        elif not isinstance(parent, ast.Return):
            continue
        if any(word in name.lower() for word in _RATIO_NAMES for name in names):
            yield RULES["integer-division"].at(
                module.file,
                node.lineno,
                confidence=0.7,
            )


def _late_binding(module: PythonModule) -> Iterator[Finding]:
    for node in module.nodes:
        if not isinstance(node, ast.Lambda | ast.FunctionDef):
            continue
        loop = module.loop_of(node)
        if not isinstance(loop, ast.For):
            continue
        parent = module.parent.get(node)
        kept = (
            isinstance(parent, ast.Call)
            and isinstance(parent.func, ast.Attribute)
            and parent.func.attr
            in ("append", "add", "connect", "bind", "submit", "setdefault", "insert")
        ) or (
            isinstance(parent, ast.Assign)
            and any(isinstance(target, ast.Subscript) for target in parent.targets)
        )
        if not kept or not isinstance(node, ast.Lambda):
            continue
        free = names_in(node.body) - {one.arg for one in parameters(node)}
        captured = free & bound_names(loop.target)
        if captured:
            yield RULES["late-binding-closure"].at(
                module.file,
                node.lineno,
                f"Every function sees the last value of {min(captured)}: bind it by a default argument.",
            )


def _missing_await(module: PythonModule) -> Iterator[Finding]:
    """Coroutines of the module, and asyncio's, called as statements."""
    plain = {f.name for f in module.functions if isinstance(f, ast.FunctionDef)}
    coroutines = {
        f.name
        for f in module.functions
        if isinstance(f, ast.AsyncFunctionDef) and f.name not in plain
        and not any(isinstance(n, ast.Yield | ast.YieldFrom) for n in own_nodes(f))
        and not decorator_names(module, f) - {"staticmethod", "classmethod", "abstractmethod"}
    }  # fmt: skip
    for node in module.of(ast.Call):
        name = module.call_name(node)
        own = name in coroutines and "." not in name
        method = name.startswith("self.") and name.count(".") == 1 and name[5:] in coroutines
        known = name in ("asyncio.sleep", "asyncio.gather", "asyncio.wait", "asyncio.wait_for")
        if not (own or method or known):
            continue
        parent = module.parent.get(node)
        where = module.function_of(node)
        used = isinstance(parent, ast.Expr) or (
            isinstance(where, ast.AsyncFunctionDef)
            and isinstance(
                parent, ast.If | ast.Compare | ast.BinOp | ast.Subscript | ast.Attribute | ast.For
            )
        )
        if used and not (isinstance(parent, ast.For) and node is not parent.iter):
            yield RULES["missing-await"].at(
                module.file, node.lineno, f"{name:.60} returns a coroutine, which is never awaited."
            )
