"""Division by what may be zero, and elements of what may be empty (CWE-369, CWE-129)."""

import ast
import re
from collections.abc import Iterator

from agents.api.finding import Finding, Severity
from agents.detectors.audit.edge_cases.guards import definition, guarded
from agents.detectors.audit.python_module import (
    FunctionNode,
    PythonModule,
    own_nodes,
    parameters,
    shape,
)
from agents.detectors.rule_file import RuleEntry, RuleFile

RULES = RuleFile(__file__, "empty_values", entry=RuleEntry)


_PATHLIKE = re.compile(
    r"path|dir|root|folder|base|home|parent|prefix|tmp|cwd|here|file|url", re.IGNORECASE
)
_SEQUENCE = re.compile(
    r"^(?:typing\.)?(?:list|List|Sequence|Collection|Iterable|deque|Deque|array)\b"
)
_NUMBER = re.compile(r"^(?:int|float|complex|Decimal|Fraction|Real|Number|np\.\w+)$")
_PLURAL = re.compile(
    r"^(?:\w*_)?(?:items|values|numbers|scores|rows|records|results|samples|data|list|lst|arr|array|entries|"
    r"elements|prices|amounts|users|orders|points|nums|xs|words|tokens|lines|names|measurements|readings|"
    r"weights|grades|temperatures|durations|times|latencies|candidates|matches|events|messages|products)$"
)
_LISTS = frozenset(["readlines", "fetchall", "findall", "glob", "splitlines", "finditer"])
_MEANS = frozenset(["statistics.mean", "statistics.median", "statistics.fmean", "statistics.mode"])


def check_empty_values(module: PythonModule) -> Iterator[Finding]:
    """Findings about zero and emptiness."""
    for node in module.nodes:
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div | ast.FloorDiv | ast.Mod):
            yield from _division(module, node, node.left, node.right)
        elif isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Div | ast.FloorDiv):
            yield from _division(module, node, node.target, node.value)
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
            yield from _index(module, node)
        elif isinstance(node, ast.Call):
            yield from _call(module, node)


def _parameter(module: PythonModule, node: ast.AST, name: str) -> ast.arg | None:
    """The parameter of the function around `node` that `name` still is: nothing rebinds it."""
    function = module.function_of(node)
    if function is None:
        return None
    for inner in own_nodes(function):
        if isinstance(inner, ast.Name) and inner.id == name and isinstance(inner.ctx, ast.Store):
            return None
    return next((one for one in parameters(function) if one.arg == name), None)


def _division(
    module: PythonModule, node: ast.BinOp | ast.AugAssign, left: ast.expr, right: ast.expr
) -> Iterator[Finding]:
    if isinstance(left, ast.Constant | ast.JoinedStr) and not isinstance(
        getattr(left, "value", None), int | float
    ):
        return  # "text" % values
    reason = _zero_reason(module, node, left, right)
    if reason is None or guarded(module, node, right, "ZeroDivisionError", "ArithmeticError"):
        return
    yield RULES["unguarded-division"].at(
        module.file, node.lineno, f"{reason}: the division raises ZeroDivisionError. Check before it.",
        confidence=0.8, end_line=node.end_lineno, severity=_severity(module, node),
    )  # fmt: skip


def _zero_reason(
    module: PythonModule, node: ast.AST, left: ast.expr, right: ast.expr
) -> str | None:
    """Why the divisor may be zero, or None if nothing says so."""
    is_modulo = isinstance(getattr(node, "op", None), ast.Mod)
    if isinstance(right, ast.Name):
        parameter = _parameter(module, node, right.id)
        if parameter is not None:
            return None if is_modulo else _zero_parameter(module, node, left, parameter)
        defined = definition(module, node, right.id)
        if defined is None or isinstance(defined, ast.Name):
            return None
        return _zero_reason(module, node, left, defined) if not is_modulo else None
    if isinstance(right, ast.Call):
        name = module.call_name(right)
        if name == "len" and right.args:
            collection = right.args[0]
            if isinstance(collection, ast.Constant | ast.List | ast.Tuple | ast.JoinedStr):
                return None
            if _never_empty(module, collection):
                return None
            return f"{shape(collection):.60} may be empty"
        if name in ("sum", "float", "int") and right.args:
            if name == "sum" and not is_modulo:
                return f"{shape(right):.60} may be zero"
            if isinstance(right.args[0], ast.Call) and module.call_name(right.args[0]) == "input":
                return "The input may be zero"
        if (
            isinstance(right.func, ast.Attribute)
            and right.func.attr in ("count", "get")
            and right.args
        ):
            if (
                isinstance(right.args[-1], ast.Constant)
                and right.args[-1].value not in (0, None)
                and len(right.args) > 1
            ):
                return None
            return f"{shape(right):.60} may be zero"
    if isinstance(right, ast.BinOp) and isinstance(right.op, ast.Sub) and not is_modulo:
        both = (right.left, right.right)
        if all(isinstance(one, ast.Name) and _parameter(module, node, one.id) for one in both):
            return f"{shape(right):.60} is zero where both are equal"
        if isinstance(right.right, ast.Constant) and module_len(right.left):
            return f"{shape(right):.60} may be zero"
    return None


def module_len(node: ast.expr) -> bool:
    """Whether an expression is a call of `len`."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "len"


def _never_empty(module: PythonModule, node: ast.expr) -> bool:
    """Constants of the module or class in capitals, and attributes of modules."""
    name = shape(node).rsplit(".", 1)[-1]
    return name.isupper() or (isinstance(node, ast.Call) and module.call_name(node) == "str.split")


def _zero_parameter(
    module: PythonModule, node: ast.AST, left: ast.expr, parameter: ast.arg
) -> str | None:
    annotation = shape(parameter.annotation) if parameter.annotation is not None else ""
    function = module.function_of(node)
    if annotation and not _NUMBER.match(annotation):
        return None
    if parameter.arg == "self" or (function is not None and function.name.startswith("__")):
        return None
    if not annotation:
        operator = getattr(node, "op", None)
        if isinstance(operator, ast.Div) and _PATHLIKE.search(shape(left)):
            return None
        if _PATHLIKE.search(parameter.arg):
            return None
    if function is not None and _positive_default(function, parameter):
        return None
    return f"The parameter {parameter.arg} may be zero"


def _positive_default(function: FunctionNode, parameter: ast.arg) -> bool:
    """A default such as 1024: callers rarely pass zero."""
    arguments = function.args
    plain = [*arguments.posonlyargs, *arguments.args]
    pairs = list(zip(plain[::-1], arguments.defaults[::-1], strict=False))
    pairs += [
        (one, d) for one, d in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if d
    ]
    return any(one is parameter and bool(getattr(default, "value", True)) for one, default in pairs)


def _index(module: PythonModule, node: ast.Subscript) -> Iterator[Finding]:
    index = node.slice
    if isinstance(index, ast.UnaryOp) and isinstance(index.op, ast.USub):
        index = index.operand
    if not (isinstance(index, ast.Constant) and index.value in (0, 1)) or isinstance(
        index.value, bool
    ):
        return
    reason = _empty_reason(module, node, node.value)
    if reason is None or _is_shape(module, node):
        return
    if guarded(module, node, node.value, "IndexError", "LookupError", "StopIteration"):
        return
    yield RULES["empty-index"].at(
        module.file, node.lineno, f"{reason}: the index raises IndexError. Check before it.",
        confidence=0.75, severity=_severity(module, node),
    )  # fmt: skip


def _severity(module: PythonModule, node: ast.AST) -> Severity:
    """Low where only the module itself calls: its callers may have checked, and for `%`."""
    function = module.function_of(node)
    private = function is not None and function.name.startswith("_")
    modulo = isinstance(getattr(node, "op", None), ast.Mod)
    return Severity.LOW if private or modulo else Severity.MEDIUM


def _is_shape(module: PythonModule, node: ast.AST) -> bool:
    parent = module.parent.get(node)
    return isinstance(parent, ast.Attribute) and parent.attr in ("shape", "ndim", "dtype")


def _empty_reason(module: PythonModule, node: ast.AST, value: ast.expr) -> str | None:
    """Why a sequence may be empty, or None if nothing says so."""
    if isinstance(value, ast.Name):
        parameter = _parameter(module, node, value.id)
        if parameter is not None:
            annotation = shape(parameter.annotation) if parameter.annotation is not None else ""
            if _SEQUENCE.match(annotation) or (not annotation and _PLURAL.match(value.id)):
                function = module.function_of(node)
                if function is not None and function.args.vararg is parameter:
                    return None
                return f"The parameter {value.id} may be empty"
            return None
        defined = definition(module, node, value.id)
        if defined is None or isinstance(defined, ast.Name):
            return None
        return _empty_reason(module, node, defined)
    if isinstance(value, ast.ListComp):
        if any(generator.ifs for generator in value.generators):
            return "The filtered list may be empty"
        return None
    if isinstance(value, ast.Call):
        name = module.call_name(value)
        if name in ("sorted", "list", "tuple", "reversed") and value.args:
            return _empty_reason(module, node, value.args[0])
        if name in ("filter", "re.findall", "glob.glob", "os.listdir"):
            return f"The result of {name} may be empty"
        if isinstance(value.func, ast.Attribute):
            if value.func.attr in _LISTS:
                if "__doc__" in shape(value.func.value):
                    return None
                return f"The result of {value.func.attr} may be empty"
            if value.func.attr == "split" and not value.args and not value.keywords:
                return "Splitting a blank text gives an empty list"
    return None


def _call(module: PythonModule, node: ast.Call) -> Iterator[Finding]:
    name = module.call_name(node)
    if name in ("max", "min") and len(node.args) == 1:
        if any(keyword.arg == "default" for keyword in node.keywords):
            return
        argument = node.args[0]
        if isinstance(argument, ast.Starred):
            return
    elif (name in _MEANS and len(node.args) == 1) or (
        name == "random.choice" and len(node.args) == 1
    ):
        argument = node.args[0]
    elif name == "next" and len(node.args) == 1:
        yield from _next(module, node)
        return
    else:
        return
    reason = _empty_reason(module, node, argument) or _empty_generator(argument)
    if reason is None or guarded(
        module, node, argument, "ValueError", "StatisticsError", "IndexError"
    ):
        return
    yield RULES["empty-reduction"].at(
        module.file, node.lineno, f"{reason}: {name} raises. Check before it, or give a default.",
        confidence=0.75,
    )  # fmt: skip


def _empty_generator(node: ast.expr) -> str | None:
    if isinstance(node, ast.GeneratorExp) and any(generator.ifs for generator in node.generators):
        return "The filtered values may be empty"
    return None


def _next(module: PythonModule, node: ast.Call) -> Iterator[Finding]:
    argument = node.args[0]
    if not isinstance(argument, ast.GeneratorExp) or not argument.generators[0].ifs:
        return
    if guarded(module, node, argument, "StopIteration"):
        return
    yield RULES["unguarded-next"].at(
        module.file, node.lineno,
        confidence=0.7, severity=_severity(module, node),
    )  # fmt: skip
