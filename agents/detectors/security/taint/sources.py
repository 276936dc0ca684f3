"""Where data of outsiders enters a Python program."""

import ast
from dataclasses import dataclass

from agents.detectors.python_names import ImportedNames
from agents.detectors.security.taint.data_flow import data_flow
from agents.detectors.security.taint.value import CONSTANT, Origin, SinkKind, Trust, Value


@dataclass(frozen=True, slots=True)
class Route:
    """A decorated function that answers requests.

    Attributes:
        framework: `flask-like` or `command`.
        path: the route's pattern, or empty.
        methods: upper-case methods; empty if the decorator does not say.
        line: of the decorator.
    """

    framework: str
    path: str
    methods: frozenset[str]
    line: int


def route_of(
    function: ast.FunctionDef | ast.AsyncFunctionDef, names: ImportedNames
) -> Route | None:
    """The route that decorators give a function, or None."""
    flow = data_flow().python
    for decorator in function.decorator_list:
        call = decorator if isinstance(decorator, ast.Call) else None
        target = call.func if call else decorator
        if not isinstance(target, ast.Attribute):
            continue
        receiver = names.resolve(target.value)
        if target.attr in flow.route_methods and flow.routers.search(receiver):
            if call is None:
                continue
            return Route(
                "flask-like", _route_path(call), _route_methods(target.attr, call), decorator.lineno
            )
        if call is not None and flow.commands.search(target.attr):
            return Route("command", "", frozenset(), decorator.lineno)
    return None


def _route_path(call: ast.Call) -> str:
    first = call.args[0] if call.args else None
    for keyword in call.keywords:
        if keyword.arg in ("rule", "path"):
            first = keyword.value
    return first.value if isinstance(first, ast.Constant) and isinstance(first.value, str) else ""


def _route_methods(attribute: str, call: ast.Call) -> frozenset[str]:
    for keyword in call.keywords:
        if keyword.arg == "methods" and isinstance(keyword.value, ast.List | ast.Tuple | ast.Set):
            return frozenset(
                element.value.upper()
                for element in keyword.value.elts
                if isinstance(element, ast.Constant) and isinstance(element.value, str)
            )
    if attribute in ("get", "post", "put", "patch", "delete", "head", "options"):
        return frozenset([attribute.upper()])
    return frozenset(["GET"]) if attribute == "route" else frozenset()


def parameter_values(
    function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda,
    names: ImportedNames,
    *,
    in_class: bool,
) -> dict[str, Value]:
    """The values of a function's parameters: hostile ones of a route, of unknown callers otherwise."""
    route = None if isinstance(function, ast.Lambda) else route_of(function, names)
    arguments = function.args
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    values: dict[str, Value] = {}
    is_event = not isinstance(function, ast.Lambda) and function.name in (
        "lambda_handler",
        "handler",
    )
    for position, parameter in enumerate(every):
        if in_class and position == 0 and parameter.arg in ("self", "cls"):
            values[parameter.arg] = CONSTANT
            continue
        trust = Trust.PARAMETER
        if route is not None and not _is_injected(parameter, arguments, names):
            trust = Trust.USER if route.framework == "flask-like" else Trust.LOCAL
        elif is_event and parameter.arg == "event":
            trust = Trust.USER
        origin = Origin(trust, parameter.arg, parameter.lineno, parameter.col_offset)
        value = Value(frozenset([origin]))
        if _is_number(parameter.annotation, names) or (
            route and f"<int:{parameter.arg}>" in route.path
        ):
            value = value.cleaned()
        values[parameter.arg] = value
    for extra in (arguments.vararg, arguments.kwarg):
        if extra is not None:
            origin = Origin(Trust.PARAMETER, extra.arg, extra.lineno, extra.col_offset)
            values[extra.arg] = Value(frozenset([origin]))
    return values


def _is_number(annotation: ast.expr | None, names: ImportedNames) -> bool:
    if isinstance(annotation, ast.BinOp) and isinstance(annotation.op, ast.BitOr):
        sides = (annotation.left, annotation.right)
        known = [
            side for side in sides if not (isinstance(side, ast.Constant) and side.value is None)
        ]
        return all(_is_number(side, names) for side in known)
    if isinstance(annotation, ast.Subscript):
        base = names.resolve(annotation.value).rpartition(".")[2]
        if base == "Literal":
            return True
        if base in ("Optional", "Annotated", "list", "List", "set", "Sequence"):
            inner = annotation.slice
            return _is_number(
                inner.elts[0] if isinstance(inner, ast.Tuple) and inner.elts else inner, names
            )
        return False
    return (
        names.resolve(annotation).rpartition(".")[2] in data_flow().python.numbers
        if annotation is not None
        else False
    )


def _is_injected(parameter: ast.arg, arguments: ast.arguments, names: ImportedNames) -> bool:
    """Whether the framework supplies it: a dependency, the request object, a session."""
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults = dict(
        zip([one.arg for one in reversed(positional)], reversed(arguments.defaults), strict=False)
    )
    defaults |= {
        one.arg: default
        for one, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        if default is not None
    }
    default = defaults.get(parameter.arg)
    if isinstance(default, ast.Call):
        name = names.resolve(default.func).rpartition(".")[2]
        if name in data_flow().python.depends:
            return True
    annotation = parameter.annotation
    if annotation is None:
        return parameter.arg in ("request", "req", "db", "session", "ws", "websocket")
    if isinstance(annotation, ast.Subscript):
        text = ast.dump(annotation)
        return "'Depends'" in text or "'Security'" in text
    return bool(data_flow().python.services.search(names.resolve(annotation)))


def source_of_name(name: str, node: ast.expr) -> Value | None:
    """The value of a dotted name that is a source, or None."""
    flow = data_flow().python
    if name in flow.local_names:
        return _source(Trust.LOCAL, name, node)
    receiver, _, part = name.rpartition(".")
    if part not in flow.request_parts or not _is_request(receiver):
        return None
    source = _source(Trust.USER, name, node)
    if part in ("url", "base_url", "path", "full_path", "raw_uri", "rel_url"):
        # A redirect to the address that was asked for stays on this host.
        return source.cleaned([SinkKind.REDIRECT])
    return source


def source_of_call(name: str, call: ast.Call) -> Value | None:
    """The value of a call that is a source, or None."""
    flow = data_flow().python
    receiver, _, method = name.rpartition(".")
    trust = None
    if name in flow.local_calls:
        trust = Trust.LOCAL
    elif method in flow.remote_methods and receiver:
        trust = Trust.USER
    elif method in ("parse_args", "parse_known_args") and receiver:
        trust = Trust.LOCAL
    elif method in flow.request_parts | flow.request_methods and (
        _is_request(receiver) or receiver == "self.rfile"
    ):
        trust = Trust.USER
    return None if trust is None else _source(trust, f"{name}()", call)


def _source(trust: Trust, text: str, node: ast.expr) -> Value:
    return Value(frozenset([Origin(trust, text, node.lineno, node.col_offset)]))


def _is_request(name: str) -> bool:
    return name in data_flow().python.request_names or (
        name.endswith(".request") and not name.startswith("urllib")
    )
