"""Checks that let through: a default or an error that allows, a switch, an empty value, a prefix of a path."""

import ast
import re
from collections.abc import Iterator

from agents.api.finding import Finding, Severity
from agents.detectors.audit.python_module import FunctionNode, PythonModule, own_nodes
from agents.detectors.python_names import argument, constant, is_true
from agents.detectors.rule_file import RuleEntry, RuleFile
from agents.detectors.security.bypasses.check_names import (
    LOGIN,
    RIGHT,
    body_of,
    is_check,
    is_guard,
)
from agents.detectors.security.request_data import client_values, is_client_value

RULES = RuleFile(__file__, "open_checks", entry=RuleEntry)

_RIGHTS_TABLE = re.compile(
    r"(?i)(^|_)(permissions?|perms|rights|acl|acls|grants|privileges|access_rules?)$"
)
_DEBUG = re.compile(
    r"(?i)(^|_)(debug|debugging|testing|test_mode|dev_mode|development|is_dev|skip_auth\w*|no_auth|disable_auth\w*|"
    r"auth_disabled|bypass\w*|insecure|skip_check\w*|skip_login)$"
)
_REFUSING = re.compile(
    r"(?i)abort|PermissionError|PermissionDenied|Forbidden|Unauthorized|HTTPException|AccessDenied|NotAuthenticated|"
    r"AuthenticationFailed|redirect"
)
_EVERY_PATH = re.compile(r"\b(request|req|self\.request)\.(path|full_path|url\.path|path_info|path_url|url|rel_url\.path)$|"
                         r"scope\[['\"]path['\"]\]$|environ\[['\"]PATH_INFO['\"]\]$")  # fmt: skip


def check_open_checks(module: PythonModule) -> Iterator[Finding]:
    """Findings about checks that a caller passes whom they were written to stop."""
    for function in module.functions:
        check = is_check(function)
        if check:
            yield from _open_errors(module, function)
            yield from _early_grant(module, function)
        if check or LOGIN.search(function.name):
            yield from _empty_values(module, function)
        if check or is_guard(module, function):
            yield from _switches(module, function)
            yield from _paths(module, function)
    yield from _defaults(module)


def _grants(statement: ast.stmt) -> bool:
    """Whether a statement returns that the check passed."""
    return isinstance(statement, ast.Return) and is_true(statement.value)


def _open_errors(module: PythonModule, function: FunctionNode) -> Iterator[Finding]:
    """`except …: return True`, and `except …: pass` before the `return True` at the end."""
    ends_open = _grants(function.body[-1])
    for node in own_nodes(function):
        if not isinstance(node, ast.Try):
            continue
        for handler in node.handlers:
            grants = any(_grants(one) for one in handler.body)
            passes = (
                ends_open
                and node in function.body
                and all(isinstance(one, ast.Pass) for one in handler.body)
                and not any(isinstance(one, ast.Return) for one in ast.walk(node))
            )
            if grants or passes:
                yield RULES["error-grants-access"].at(
                    module.file, handler.lineno, end_line=handler.end_lineno
                )


def _early_grant(module: PythonModule, function: FunctionNode) -> Iterator[Finding]:
    """`return True` before the statements that check."""
    body = body_of(function)
    for number, statement in enumerate(body[:-1]):
        if _grants(statement) and not isinstance(body[number + 1], ast.FunctionDef):
            yield RULES["check-switched-off"].at(
                module.file,
                statement.lineno,
                f"{function.name} returns before it checks anything.",
                severity=Severity.HIGH,
            )
            return
    owner = module.class_of(function)
    if owner is None or len(body) != 1 or not _grants(body[0]):
        return
    restricts = re.search(r"(Owner|Admin|Staff|Member|Authenticated|Restricted|Only)", owner.name)
    based = any("Permission" in ast.unparse(one) for one in owner.bases)
    if restricts and based and function.name.startswith("has_"):
        yield RULES["check-switched-off"].at(
            module.file, body[0].lineno, f"{owner.name}.{function.name} permits everybody."
        )


def _empty_values(module: PythonModule, function: FunctionNode) -> Iterator[Finding]:
    """`if not password or verify(password): return True`: an empty one passes."""
    for node in own_nodes(function):
        if isinstance(node, ast.If) and len(node.body) == 1 and _grants(node.body[0]):
            test = node.test
        elif isinstance(node, ast.Return) and isinstance(node.value, ast.BoolOp):
            test = node.value
        else:
            continue
        if not isinstance(test, ast.BoolOp) or not isinstance(test.op, ast.Or):
            continue
        first, *rest = test.values
        if not (isinstance(first, ast.UnaryOp) and isinstance(first.op, ast.Not)):
            continue
        given = ast.dump(first.operand)
        name = ast.unparse(first.operand)
        if not re.search(r"(?i)passw|token|secret|key|otp|code|signature|credential|given", name):
            continue
        calls = [one for value in rest for one in ast.walk(value) if isinstance(one, ast.Call)]
        if any(ast.dump(one) == given for call in calls for one in call.args):
            yield RULES["allowed-by-default"].at(
                module.file, test.lineno, f"An empty {name} passes the check: refuse it first."
            )


def _switches(module: PythonModule, function: FunctionNode) -> Iterator[Finding]:
    """A header, an argument or a flag that lets the caller through."""
    values = client_values(module, function)
    check, refuses = is_check(function), _refuses(function)
    for node in own_nodes(function):
        if not isinstance(node, ast.If) or not _lets_through(node.body, check, refuses):
            continue
        chosen = next((one for one in _tested(node.test) if is_client_value(one, values)), None)
        if chosen is not None and not re.search(
            r"(?i)authorization|token|secret|password|api.?key|signature|method|OPTIONS",
            ast.unparse(node.test),
        ):
            yield RULES["check-switched-off"].at(
                module.file,
                node.lineno,
                "The client decides whether it is checked: any request can carry this value.",
                severity=Severity.CRITICAL,
            )
            continue
        flag = next((name for one in _tested(node.test) if (name := _flag_of(one))), "")
        if flag and (check or refuses):
            yield RULES["check-switched-off"].at(
                module.file,
                node.lineno,
                f"{flag} switches the check off: one setting opens everything.",
                confidence=0.6,
            )


def _tested(test: ast.expr) -> list[ast.expr]:
    """The parts of a test of which one alone is enough: operands of `or`, or the sides of a comparison."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or):
        return [one for value in test.values for one in _tested(value)]
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        other = test.comparators[0]
        literal = isinstance(other, ast.Constant) and other.value not in (None, "", False)
        return [test.left] if literal and isinstance(test.ops[0], ast.Eq | ast.Is | ast.In) else []
    return [test]


def _refuses(function: FunctionNode) -> bool:
    """Whether a function refuses by an error or an answer, so that returning nothing lets through."""
    return _REFUSING.search(ast.unparse(function)) is not None


def _lets_through(body: list[ast.stmt], check: bool, refuses: bool) -> bool:
    """Whether a branch only returns what lets a caller through.

    Args:
        body: the branch.
        check: whether the function tells its caller that the check passed, by true.
        refuses: whether it refuses by itself, so that nothing lets through, or what is behind it.
    """
    last = body[-1]
    if not isinstance(last, ast.Return) or len(body) > 2:
        return False
    if is_true(last.value):
        return check
    if last.value is None or (isinstance(last.value, ast.Constant) and last.value.value is None):
        return refuses
    written = ast.unparse(last.value)
    return bool(
        re.search(r"\b(call_next|get_response|self\.app|self\.get_response)\(", written)
        or re.fullmatch(r"(await )?\w+\(\*args, \*\*kwargs\)", written)
    )


def _flag_of(node: ast.expr) -> str:
    """The name of a flag for development, such as `settings.DEBUG`; empty for anything else."""
    if isinstance(node, ast.Name | ast.Attribute):
        name = node.id if isinstance(node, ast.Name) else node.attr
        return name if _DEBUG.search(name) else ""
    key: ast.expr | None = None
    if isinstance(node, ast.Subscript):
        key = node.slice
    elif isinstance(node, ast.Call) and re.search(r"(getenv|\.get)$", ast.unparse(node.func)):
        key = argument(node, 0)
    written = constant(key) if key is not None else None
    return written if isinstance(written, str) and _DEBUG.search(written) else ""


def _paths(module: PythonModule, function: FunctionNode) -> Iterator[Finding]:
    """`if request.path.startswith("/public"): return`: more paths begin so than those that are meant."""
    check, refuses = is_check(function), _refuses(function)
    for node in own_nodes(function):
        if not isinstance(node, ast.If) or not _lets_through(node.body, check, refuses):
            continue
        for part in ast.walk(node.test):
            text, severity = _loose_path(module, part)
            if text:
                yield RULES["loose-path"].at(module.file, node.lineno, text, severity=severity)
                break


def _loose_path(module: PythonModule, part: ast.AST) -> tuple[str, Severity]:
    if isinstance(part, ast.Compare) and isinstance(part.ops[0], ast.In):
        value = constant(part.left)
        if isinstance(value, str) and _EVERY_PATH.search(ast.unparse(part.comparators[0])):
            return f"Every path that contains {value!r} anywhere is open.", Severity.HIGH
    if not isinstance(part, ast.Call) or not isinstance(part.func, ast.Attribute):
        return "", Severity.INFO
    if part.func.attr not in ("startswith", "endswith") or not _EVERY_PATH.search(
        ast.unparse(part.func.value)
    ):
        return "", Severity.INFO
    values = _texts(module, argument(part, 0))
    if part.func.attr == "endswith":
        text = f"Any address can be given the ending {values[0]!r}" if values else ""
        return f"{text}: it opens every path.", Severity.HIGH if values else Severity.INFO
    if "/" in values or "" in values:
        return "Every path begins with '/': nothing is checked.", Severity.CRITICAL
    loose = [one for one in values if not one.endswith(("/", "?", "."))]
    if loose:
        return (
            f"{loose[0] + 'x'!r} begins like {loose[0]!r} and is open, too: compare whole paths, or end the "
            "prefix with a slash.",
            Severity.MEDIUM,
        )
    return "", Severity.INFO


def _texts(module: PythonModule, node: ast.expr | None) -> list[str]:
    """The texts of a constant, a tuple or list of them, a name for one, or what a comprehension runs over."""
    if isinstance(node, ast.Name):
        node = module.constants.get(node.id) or _iterated(module, node)
        if isinstance(node, ast.Name):
            node = module.constants.get(node.id)
    if isinstance(node, ast.Call) and ast.unparse(node.func) in (
        "tuple",
        "frozenset",
        "set",
        "list",
    ):
        node = argument(node, 0)
        if isinstance(node, ast.Name):
            node = module.constants.get(node.id)
    parts = node.elts if isinstance(node, ast.Tuple | ast.List | ast.Set) else [node]
    values = [constant(one) for one in parts if one is not None]
    return [one for one in values if isinstance(one, str)]


def _iterated(module: PythonModule, name: ast.Name) -> ast.expr | None:
    """What a comprehension around a name takes its values from."""
    for ancestor in module.ancestors(name):
        if isinstance(ancestor, ast.GeneratorExp | ast.ListComp):
            for one in ancestor.generators:
                if isinstance(one.target, ast.Name) and one.target.id == name.id:
                    return one.iter
    return None


def _defaults(module: PythonModule) -> Iterator[Finding]:
    """`PERMISSIONS.get(action, True)`, `getattr(user, "is_admin", True)`."""
    for call, name in module.calls:
        if name == "getattr" and len(call.args) == 3 and is_true(call.args[2]):
            key = constant(call.args[1])
            # Objects of users without the attribute is_authenticated are older than it.
            if isinstance(key, str) and RIGHT.search(key) and key != "is_authenticated":
                yield RULES["allowed-by-default"].at(
                    module.file, call.lineno, f"Whoever has no {key} is taken to have it."
                )
        elif (
            isinstance(call.func, ast.Attribute)
            and call.func.attr in ("get", "pop")
            and len(call.args) == 2
            and is_true(call.args[1])
        ):
            key = constant(call.args[0])
            table = ast.unparse(call.func.value).rpartition(".")[2]
            function = module.function_of(call)
            returned = isinstance(module.parent.get(call), ast.Return)
            if isinstance(key, str) and RIGHT.search(key):
                text = f"Whoever has no {key} is taken to have it."
            elif _RIGHTS_TABLE.search(table) or (
                returned
                and function is not None
                and is_check(function)
                and not isinstance(key, str)
            ):
                text = "What is not in the table is allowed."
            else:
                continue
            yield RULES["allowed-by-default"].at(module.file, call.lineno, text)
