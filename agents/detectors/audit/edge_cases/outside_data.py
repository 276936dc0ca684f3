"""Values from outside that are used without a check: None, missing keys, text that is no number, files."""

import ast
import re
from collections.abc import Iterator

from agents.api.finding import Finding, Severity
from agents.detectors.audit.edge_cases.guards import catches, definition, guarded
from agents.detectors.audit.python_module import (
    PythonModule,
    own_nodes,
    parameters,
    shape,
    terminates,
)
from agents.detectors.rule_file import RuleEntry, RuleFile

RULES = RuleFile(__file__, "outside_data", entry=RuleEntry)


_MATCHES = frozenset(["re.match", "re.search", "re.fullmatch"])
_MAYBE_NONE_METHODS = frozenset(["fetchone", "one_or_none", "scalar_one_or_none", "find_one"])
_MAYBE_NONE_CALLS = frozenset(["os.environ.get", "os.getenv", "shutil.which", "inspect.getmodule"])
_OUTSIDE_CALLS = frozenset([
    "input", "json.loads", "json.load", "yaml.safe_load", "tomllib.load", "os.environ.get", "os.getenv",
])  # fmt: skip
_OUTSIDE_METHODS = frozenset(["json", "get_json"])
_REQUEST = (
    "request.args", "request.form", "request.query_params", "request.GET", "request.POST", "request.headers",
    "request.cookies", "sys.argv", "os.environ",
)  # fmt: skip


_ONE_ROW = re.compile(
    r"PRAGMA|COUNT\(|MAX\(|MIN\(|SUM\(|EXISTS|RETURNING|last_insert", re.IGNORECASE
)
"""Queries that always have a row."""


def check_outside_data(module: PythonModule) -> Iterator[Finding]:
    """Findings about None and outside data."""
    for node in module.nodes:
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            yield from _none(module, node, node.value)
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
            yield from _none(module, node, node.value)
            yield from _key(module, node)
        elif isinstance(node, ast.Call):
            yield from _conversion(module, node)
            yield from _open(module, node)
            yield from _naive(module, node)
        elif isinstance(node, ast.Assign):
            yield from _unpacked(module, node)
    for function in module.functions:
        yield from _recursion(module, function)


def _maybe_none(module: PythonModule, call: ast.expr) -> str | None:
    """What returns None where it finds nothing."""
    if isinstance(call, ast.Await):
        call = call.value
    if not isinstance(call, ast.Call):
        return None
    name = module.call_name(call)
    if name in _MATCHES or (name in _MAYBE_NONE_CALLS and len(call.args) == 1):
        return name
    if not isinstance(call.func, ast.Attribute):
        return None
    method = call.func.attr
    if method in _MAYBE_NONE_METHODS:
        if _ONE_ROW.search(shape(call)):
            return None
        return f".{method}"
    if method in ("match", "search", "fullmatch") and len(call.args) == 1:
        receiver = call.func.value
        pattern = module.qualified(receiver) or ""
        defined = _global_value(module, pattern)
        if isinstance(defined, ast.Call) and module.call_name(defined) == "re.compile":
            return f".{method}"
    if method == "get" and len(call.args) == 1 and not call.keywords:
        return ".get"
    if (
        method == "find"
        and isinstance(call.func.value, ast.Name)
        and call.func.value.id in ("soup", "root", "tree", "element")
    ):
        return ".find"
    return None


def _global_value(module: PythonModule, name: str) -> ast.expr | None:
    for statement in module.tree.body:
        if isinstance(statement, ast.Assign) and any(shape(t) == name for t in statement.targets):
            return statement.value
    return None


def _none(
    module: PythonModule, node: ast.Attribute | ast.Subscript, value: ast.expr
) -> Iterator[Finding]:
    origin = _maybe_none(module, value)
    direct = origin is not None
    if origin is None and isinstance(value, ast.Name):
        defined = definition(module, node, value.id)
        origin = _maybe_none(module, defined) if defined is not None else None
        if origin is None or _is_earlier_use(module, node, value.id):
            return
    if origin is None or guarded(module, node, value, "AttributeError", "TypeError"):
        return
    if origin == ".get":
        if not direct or not _is_method_call(module, node):
            return
        receiver = shape(getattr(getattr(value, "func", None), "value", value))
        if receiver.rsplit(".", 1)[-1] in (
            "session",
            "client",
            "requests",
            "httpx",
            "http",
            "queue",
            "api",
        ):
            return
    yield RULES["none-used"].at(
        module.file,
        node.lineno,
        f"{origin} gives None where nothing is found; {shape(node):.60} then raises. Check before it.",
        confidence=0.85 if origin != ".get" else 0.6,
    )


def _is_method_call(module: PythonModule, node: ast.AST) -> bool:
    parent = module.parent.get(node)
    return isinstance(node, ast.Attribute) and isinstance(parent, ast.Call) and parent.func is node and node.attr in (
        "strip", "lower", "upper", "split", "encode", "startswith", "endswith", "replace", "items", "keys", "values", "append", "get",
    )  # fmt: skip


def _is_earlier_use(module: PythonModule, node: ast.AST, name: str) -> bool:
    """Whether an earlier line of the function uses the value in the same way: one finding is enough."""
    function = module.function_of(node) or module.tree
    return any(
        isinstance(inner, ast.Attribute | ast.Subscript)
        and shape(inner.value) == name
        and (inner.lineno, inner.col_offset) < (node.lineno, node.col_offset)  # type: ignore[attr-defined]
        for inner in own_nodes(function)
    )


def _is_outside(module: PythonModule, node: ast.expr, depth: int = 0) -> str | None:
    """Where a value from outside comes from, or None."""
    if isinstance(node, ast.Await):
        node = node.value
    if isinstance(node, ast.Call):
        name = module.call_name(node)
        if name in _OUTSIDE_CALLS:
            return name
        if isinstance(node.func, ast.Attribute):
            if node.func.attr in _OUTSIDE_METHODS and not node.args:
                return f".{node.func.attr}()"
            if node.func.attr in ("get", "strip", "split", "read", "readline", "lower"):
                return _is_outside(module, node.func.value, depth)
    text = module.qualified(node) or ""
    if text.endswith(_REQUEST) or text in _REQUEST:
        return text
    if isinstance(node, ast.Subscript):
        return _is_outside(module, node.value, depth)
    if isinstance(node, ast.Name) and depth < 3:
        defined = definition(module, node, node.id)
        return _is_outside(module, defined, depth + 1) if defined is not None else None
    return None


def _conversion(module: PythonModule, node: ast.Call) -> Iterator[Finding]:
    name = module.call_name(node)
    if name in ("int", "float", "Decimal", "decimal.Decimal") and len(node.args) >= 1:
        origin = _is_outside(module, node.args[0])
        if origin is None or any(keyword.arg == "type" for keyword in node.keywords):
            return
        if origin in ("json.loads", "json.load", "tomllib.load", "yaml.safe_load"):
            return
    elif name in (
        "json.loads",
        "datetime.datetime.strptime",
        "datetime.datetime.fromisoformat",
        "uuid.UUID",
        "ipaddress.ip_address",
    ):
        if not node.args:
            return
        origin = _is_outside(module, node.args[0])
        if origin is None and isinstance(node.args[0], ast.Name):
            function = module.function_of(node)
            names = {one.arg for one in parameters(function)} if function is not None else set()
            if name == "json.loads" and node.args[0].id in names and node.args[0].id in (
                "body", "payload", "raw", "request_body", "line", "message", "data",
            ):  # fmt: skip
                origin = f"the parameter {node.args[0].id}"
        if origin is None:
            return
    else:
        return
    if catches(module, node, "ValueError", "TypeError", "JSONDecodeError", "InvalidOperation"):
        return
    if guarded(module, node, node.args[0]) and any(
        word in module.file.quote(max(1, node.lineno - 4), node.lineno)
        for word in ("isdigit", "isdecimal", "isnumeric", "fullmatch")
    ):
        return
    yield RULES["unchecked-conversion"].at(
        module.file, node.lineno, f"{name} raises ValueError if the text from {origin:.60} is malformed.",
        confidence=0.75,
    )  # fmt: skip


def _key(module: PythonModule, node: ast.Subscript) -> Iterator[Finding]:
    text = module.qualified(node.value) or ""
    if text == "sys.argv" and isinstance(node.slice, ast.Constant):
        if isinstance(node.slice.value, int) and node.slice.value >= 1:
            checked = any(
                "len(sys.argv)" in line or "len(argv)" in line for line in module.file.lines
            )
            if not checked and not catches(module, node, "IndexError"):
                yield RULES["unchecked-argv"].at(module.file, node.lineno)
        return
    if not isinstance(node.slice, ast.Constant) or not isinstance(node.slice.value, str):
        return
    if text == "os.environ":
        if not guarded(module, node, node, "KeyError") and module.function_of(node) is not None:
            if f'"{node.slice.value}" in os.environ' not in module.file.text:
                yield RULES["environ-key"].at(
                    module.file, node.lineno, f"KeyError if {node.slice.value:.60} is not set."
                )
        return
    origin = _is_outside(module, node.value)
    if (
        origin is None
        or origin == "input"
        or guarded(module, node, node.value, "KeyError", "LookupError")
    ):
        return
    if guarded(module, node, node):
        return
    parent = module.parent.get(node)
    if isinstance(parent, ast.Subscript) and parent.value is node:
        return  # the inner key is reported
    yield RULES["missing-key"].at(
        module.file, node.lineno, f"KeyError if {node.slice.value!r:.40} is missing from {origin:.40}.",
        confidence=0.65, severity=Severity.MEDIUM if "request" in origin or "json" in origin else Severity.LOW,
    )  # fmt: skip


def _open(module: PythonModule, node: ast.Call) -> Iterator[Finding]:
    if module.call_name(node) != "open":
        return
    mode = (
        node.args[1]
        if len(node.args) > 1
        else next((k.value for k in node.keywords if k.arg == "mode"), None)
    )
    text = mode is None or (
        isinstance(mode, ast.Constant) and isinstance(mode.value, str) and "b" not in mode.value
    )
    if (
        text
        and not any(keyword.arg in ("encoding", None) for keyword in node.keywords)
        and len(node.args) < 4
    ):
        yield RULES["open-without-encoding"].at(module.file, node.lineno)
    parent = module.parent.get(node)
    if isinstance(parent, ast.withitem) or _is_closed(module, node, parent):
        function = module.function_of(node)
        names = {one.arg for one in parameters(function)} if function is not None else set()
        reading = mode is None or (
            isinstance(mode, ast.Constant) and str(mode.value).startswith("r")
        )
        if (
            reading
            and node.args
            and isinstance(node.args[0], ast.Name)
            and node.args[0].id in names
        ):
            if not guarded(
                module,
                node,
                node.args[0],
                "OSError",
                "IOError",
                "FileNotFoundError",
                "EnvironmentError",
            ):
                yield RULES["unguarded-open"].at(module.file, node.lineno)
        return
    yield RULES["file-not-closed"].at(
        module.file,
        node.lineno,
        confidence=0.8,
    )


_USING = frozenset(
    ["json.dump", "json.load", "pickle.dump", "pickle.load", "csv.writer", "csv.reader", "csv.DictReader",
     "csv.DictWriter", "yaml.safe_load", "yaml.dump", "yaml.safe_dump", "marshal.dump", "marshal.load", "print",
     "len", "iter", "next", "enumerate", "list"]
)  # fmt: skip
"""Functions that read or write a file and leave it open."""


def _only_uses(module: PythonModule, call: ast.Call) -> bool:
    return module.call_name(call) in _USING


def _is_closed(module: PythonModule, node: ast.Call, parent: ast.AST | None) -> bool:
    """Kept in an attribute, returned, passed on, or closed in the same function."""
    if isinstance(
        parent,
        ast.Return | ast.Call | ast.Yield | ast.IfExp | ast.keyword | ast.Lambda | ast.BoolOp,
    ):
        return not (
            isinstance(parent, ast.Call)
            and module.call_name(parent).endswith(("json.load", "csv.reader", "yaml.safe_load"))
        )
    if isinstance(parent, ast.Assign | ast.AnnAssign):
        targets = parent.targets if isinstance(parent, ast.Assign) else [parent.target]
        if any(not isinstance(target, ast.Name) for target in targets):
            return True
        name = targets[0].id if isinstance(targets[0], ast.Name) else ""
        scope = module.function_of(node) or module.tree
        for inner in own_nodes(scope):
            if (
                isinstance(inner, ast.Return | ast.Yield)
                and inner.value is not None
                and shape(inner.value) == name
            ):
                return True
            if isinstance(inner, ast.withitem) and name in shape(inner.context_expr):
                return True
            if isinstance(inner, ast.Try):
                for statement in inner.finalbody:
                    if f"{name}.close" in shape(statement):
                        return True
            if (
                isinstance(inner, ast.Call)
                and any(shape(one) == name for one in inner.args)
                and not _only_uses(module, inner)
            ):
                return True
            if isinstance(inner, ast.Assign) and shape(inner.value) == name:
                return True
    return False


def _naive(module: PythonModule, node: ast.Call) -> Iterator[Finding]:
    name = module.call_name(node)
    if name in ("datetime.datetime.utcnow", "datetime.datetime.utcfromtimestamp"):
        yield RULES["naive-datetime-mix"].at(
            module.file,
            node.lineno,
            f"{name.rsplit('.', 1)[-1]} returns a naive time: pass a time zone.",
        )
    elif name == "datetime.datetime.now" and not node.args and not node.keywords:
        parent = module.parent.get(node)
        aware = "timezone" in module.file.text and isinstance(parent, ast.BinOp | ast.Compare)
        rule = RULES["naive-datetime-mix"] if aware else RULES["naive-datetime"]
        yield rule.at(module.file, node.lineno, "This time has no time zone: pass one.")


def _unpacked(module: PythonModule, node: ast.Assign) -> Iterator[Finding]:
    target, value = node.targets[0], node.value
    if not isinstance(target, ast.Tuple) or any(
        isinstance(one, ast.Starred) for one in target.elts
    ):
        return
    if not (isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute)):
        return
    if value.func.attr not in ("split", "rsplit") or guarded(
        module, node, value.func.value, "ValueError"
    ):
        return
    yield RULES["unpacked-split"].at(
        module.file, node.lineno,
        confidence=0.7, severity=Severity.MEDIUM if _text_from_parameter(module, node, value) else Severity.LOW,
    )  # fmt: skip


def _text_from_parameter(module: PythonModule, node: ast.AST, call: ast.Call) -> bool:
    function = module.function_of(node)
    receiver = call.func.value if isinstance(call.func, ast.Attribute) else call
    names = {one.arg for one in parameters(function)} if function is not None else set()
    return shape(receiver) in names or _is_outside(module, receiver) is not None


def _recursion(
    module: PythonModule, function: ast.FunctionDef | ast.AsyncFunctionDef
) -> Iterator[Finding]:
    """A function that calls itself before anything lets it end."""
    method = module.class_of(function) is not None
    imported = {
        alias.asname or alias.name
        for inner in own_nodes(function)
        if isinstance(inner, ast.ImportFrom)
        for alias in inner.names
    }
    if function.name in imported:
        return
    for statement in function.body:
        for inner in (statement, *own_nodes(statement)):
            if isinstance(inner, ast.Call):
                name = shape(inner.func)
                own = name == (f"self.{function.name}" if method else function.name)
                if own and not _conditional(module, inner, function):
                    if len(inner.args) + len(inner.keywords) or not method:
                        yield RULES["unbounded-recursion"].at(
                            module.file,
                            inner.lineno,
                            f"Every call of {function.name} calls it again.",
                        )
                        return
        leaves = any(
            isinstance(inner, ast.Return | ast.Raise | ast.Yield | ast.YieldFrom)
            for inner in (statement, *own_nodes(statement))
        )
        if leaves or terminates([statement]):
            return


def _conditional(module: PythonModule, node: ast.AST, function: ast.AST) -> bool:
    kinds = (
        ast.If,
        ast.IfExp,
        ast.For,
        ast.AsyncFor,
        ast.While,
        ast.BoolOp,
        ast.Try,
        ast.Match,
        ast.Lambda,
        ast.comprehension,
        ast.ListComp,
        ast.GeneratorExp,
        ast.SetComp,
        ast.DictComp,
        ast.With,
        ast.AsyncWith,
    )
    for ancestor in module.ancestors(node):
        if ancestor is function:
            return False
        if isinstance(ancestor, kinds):
            return True
    return True
