"""Checks that decide nothing, or the opposite: dropped results, assertions, a value compared with itself."""

import ast
import re
from collections.abc import Iterator

from agents.api.finding import Finding
from agents.detectors.audit.python_module import FunctionNode, PythonModule, own_nodes
from agents.detectors.python_names import argument, constant
from agents.detectors.rule_file import RuleEntry, RuleFile
from agents.detectors.security.bypasses.check_names import (
    CHECK_DECORATOR,
    LOGIN,
    RIGHT,
    body_of,
    is_check,
)
from agents.detectors.security.request_data import (
    client_values,
    is_client_value,
    may_read_requests,
)

RULES = RuleFile(__file__, "void_checks", entry=RuleEntry)

_PROOF = re.compile(
    r"(?i)passw|pwd|secret|token|code|otp|auth(?!or)|verif|check|credential|saml|oidc|sso|signature|cert|ldap|hash|"
    r"pin\b|key|valid|callback|flow|challenge|assert"
)
"""What a login proves somebody by; a function that has none of these words proves nothing."""
_EXPIRY = re.compile(r"(?i)(^|_)(expir\w*|exp|valid_until|not_after|expires_at)$")
_NOW = re.compile(r"(?i)(^|[._])(now|utcnow|time|today|timestamp|current_time)(\(.*\))?$")
_VERIFIERS = re.compile(
    r"(^|\.)(compare_digest|checkpw|check_password_hash|check_password|verify_password|password_verify|"
    r"constant_time_compare|safe_str_cmp)$"
)
_RESPONSES = re.compile(
    r"(^|\.)(redirect|RedirectResponse|HttpResponseForbidden|HttpResponseRedirect|HttpResponseBadRequest|"
    r"HttpResponseNotAllowed|JsonResponse|PlainTextResponse|HTMLResponse)$"
)
_ERRORS = re.compile(
    r"(^|\.)(HTTPException|PermissionDenied|Unauthorized|Forbidden|NotAuthenticated|AuthenticationFailed|Http404|"
    r"HTTPForbidden|HTTPUnauthorized|HTTPFound|AccessDenied)$"
)
_CONFIRMATION = re.compile(
    r"(?i)confirm|repeat|again|password_?2|retype|verify_password|_2$|new_|old_"
)


def check_void_checks(module: PythonModule) -> Iterator[Finding]:
    """Findings about checks on whose answer nothing depends, or the wrong thing."""
    for function in module.functions:
        yield from _inverted_expiry(module, function)
        yield from _login_by_name(module, function)
        yield from _above_route(module, function)
    yield from _assertions(module)
    yield from _of_itself(module)
    yield from _ignored(module)
    yield from _inverted(module)


def _above_route(module: PythonModule, function: FunctionNode) -> Iterator[Finding]:
    """A check above the decorator that registers the function, which registers it without the check."""
    names = [_decorator(one) for one in function.decorator_list]
    routes = [number for number, one in enumerate(function.decorator_list) if _registers(one)]
    for number, name in enumerate(names):
        if routes and number < routes[-1] and CHECK_DECORATOR.search(name.rpartition(".")[2]):
            yield RULES["check-above-route"].at(
                module.file,
                function.decorator_list[number].lineno,
                f"The route is registered without {name}, which stands above it.",
            )


def _decorator(node: ast.expr) -> str:
    return ast.unparse(node.func if isinstance(node, ast.Call) else node)


def _registers(node: ast.expr) -> bool:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    first = constant(argument(node, 0, "path", "rule"))
    names = ("route", "get", "post", "put", "patch", "delete")
    return node.func.attr in names and isinstance(first, str) and first.startswith("/")


def _assertions(module: PythonModule) -> Iterator[Finding]:
    for node in module.of(ast.Assert):
        words = [
            one.attr if isinstance(one, ast.Attribute) else one.id
            for one in ast.walk(node.test)
            if isinstance(one, ast.Attribute | ast.Name)
        ]
        roles = isinstance(node.test, ast.Compare) and _names_role(node.test.left)
        known = "nosec" in module.file.quote(node.lineno)
        if not known and (roles or any(RIGHT.search(one) for one in words)):
            yield RULES["assert-as-check"].at(module.file, node.lineno)


def _names_role(node: ast.expr) -> bool:
    """`user.role`, `session["role"]`, `session.get("role")`."""
    if isinstance(node, ast.Attribute):
        return node.attr in ("role", "user_role")
    key = node.slice if isinstance(node, ast.Subscript) else None
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "get"
    ):
        key = argument(node, 0)
    return key is not None and constant(key) in ("role", "user_role", "is_admin")


def _of_itself(module: PythonModule) -> Iterator[Finding]:
    for call, name in module.calls:
        if _VERIFIERS.search(name) and len(call.args) >= 2:
            if ast.dump(call.args[0]) == ast.dump(call.args[1]):
                yield RULES["check-of-itself"].at(
                    module.file,
                    call.lineno,
                    "A value is compared with itself: the check always passes.",
                )
    for function in module.functions if may_read_requests(module) else ():
        values = client_values(module, function)
        for node in own_nodes(function):
            if not isinstance(node, ast.Compare) or len(node.ops) != 1:
                continue
            if not isinstance(node.ops[0], ast.Eq | ast.NotEq):
                continue
            sides = [node.left, node.comparators[0]]
            if all(is_client_value(one, values) for one in sides) and not _CONFIRMATION.search(
                ast.unparse(node)
            ):
                secret = re.search(
                    r"(?i)token|otp|code|secret|signature|passw|csrf|captcha", ast.unparse(node)
                )
                if secret and not re.search(r"(?i)cookie|header", ast.unparse(node)):
                    yield RULES["check-of-itself"].at(
                        module.file, node.lineno, "The client sends both sides of the comparison."
                    )


def _ignored(module: PythonModule) -> Iterator[Finding]:
    """Statements that check, refuse or answer, and whose result is dropped."""
    predicates = {one.name for one in module.functions if is_check(one) and _is_predicate(one)}
    for node in module.of(ast.Expr):
        call = node.value
        if isinstance(call, ast.Await):
            call = call.value
        if not isinstance(call, ast.Call):
            continue
        name = module.names.resolve(call.func)
        last = name.rpartition(".")[2]
        if _VERIFIERS.search(name) or (last in predicates and last != "__init__"):
            function = module.function_of(node)
            if function is not None and function.name == last:
                continue
            if any(isinstance(one, ast.Constant) for one in call.args):
                continue  # a dummy, so that unknown users take as long as known ones
            yield RULES["ignored-check"].at(
                module.file, node.lineno, f"The answer of {last} is dropped: nothing depends on it."
            )
        elif _ERRORS.search(name):
            yield RULES["ignored-check"].at(
                module.file, node.lineno, f"{last} is made and not raised: nothing is refused."
            )
        elif _RESPONSES.search(name) and module.function_of(node) is not None:
            if name.startswith(("self.", "super()")) or ("." in name and not _framework(name)):
                continue
            yield RULES["ignored-check"].at(
                module.file,
                node.lineno,
                f"The answer of {last} is not returned: the function goes on.",
            )


def _framework(name: str) -> bool:
    return name.partition(".")[0] in (
        "flask",
        "django",
        "fastapi",
        "starlette",
        "quart",
        "werkzeug",
    )


def _is_predicate(function: FunctionNode) -> bool:
    """Whether a function only tells: it returns truth values and raises nothing itself."""
    returns = [one for one in own_nodes(function) if isinstance(one, ast.Return)]
    if not returns or any(isinstance(one, ast.Raise) for one in own_nodes(function)):
        return False
    if re.search(r"abort\(|_or_4|raise_", ast.unparse(function)):
        return False
    return all(
        isinstance(one.value, ast.Compare | ast.BoolOp)
        or (isinstance(one.value, ast.Constant) and isinstance(one.value.value, bool))
        or (isinstance(one.value, ast.UnaryOp) and isinstance(one.value.op, ast.Not))
        for one in returns
    )


def _inverted(module: PythonModule) -> Iterator[Finding]:
    """`if user.is_admin: raise PermissionError`."""
    for node in module.of(ast.If):
        name = _positive(node.test)
        if not name or len(node.body) > 2:
            continue
        last = node.body[-1]
        written = ast.unparse(last)
        refuses = isinstance(last, ast.Raise) or re.match(r"(return )?(flask\.)?abort\(", written)
        if refuses and re.search(
            r"PermissionError|PermissionDenied|Forbidden|Unauthorized|\b40[13]\b|HTTP_40[13]|AccessDenied",
            written,
        ):
            yield RULES["inverted-check"].at(
                module.file,
                node.lineno,
                f"Who is {name} is refused, and everybody else let through.",
            )


def _login_by_name(module: PythonModule, function: FunctionNode) -> Iterator[Finding]:
    """A login that opens a session for the name that the client sends, without any proof."""
    if not LOGIN.search(function.name):
        return
    values = client_values(module, function)
    reads = any(
        isinstance(one, ast.expr) and is_client_value(one, values) for one in own_nodes(function)
    )
    written = ast.unparse(ast.Module(body=body_of(function), type_ignores=[]))
    if not reads or _PROOF.search(written):
        return
    for node in own_nodes(function):
        opens = isinstance(node, ast.Call) and ast.unparse(node.func).endswith("login_user")
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
            opens = ast.unparse(node.targets[0].value).endswith("session")
        if opens and isinstance(node, ast.expr | ast.stmt):
            yield RULES["login-without-proof"].at(module.file, node.lineno)
            return


def _inverted_expiry(module: PythonModule, function: FunctionNode) -> Iterator[Finding]:
    """`def is_valid(token): return token.expires < now()`: what has expired is valid."""
    valid = re.search(
        r"^_*is_(still_)?(valid|active|fresh|current|alive|usable)\w*$", function.name
    )
    expired = re.search(r"^_*(is|has)_(expired|outdated|stale)\w*$", function.name)
    body = body_of(function)
    if not (valid or expired) or len(body) != 1 or not isinstance(body[0], ast.Return):
        return
    test = body[0].value
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return
    left, right = ast.unparse(test.left), ast.unparse(test.comparators[0])
    less = isinstance(test.ops[0], ast.Lt | ast.LtE)
    if not less and not isinstance(test.ops[0], ast.Gt | ast.GtE):
        return
    if _EXPIRY.search(left.rpartition(".")[2]) and _NOW.search(right):
        expiry_first = less
    elif _EXPIRY.search(right.rpartition(".")[2]) and _NOW.search(left):
        expiry_first = not less
    else:
        return
    if expiry_first == bool(valid):
        word = "valid" if valid else "expired"
        yield RULES["inverted-check"].at(
            module.file, test.lineno, f"{function.name} holds for the wrong ones: the comparison says the "
            f"opposite of {word}.",
        )  # fmt: skip


def _positive(test: ast.expr) -> str:
    if isinstance(test, ast.Call):
        test = test.func
    name = (
        test.attr
        if isinstance(test, ast.Attribute)
        else test.id
        if isinstance(test, ast.Name)
        else ""
    )
    return name if RIGHT.search(name) else ""
