"""The detector `bypasses`: ways around a check of who may do something, in Python.

A *check* is a function whose name says so (`is_admin`, `has_permission`, `verify_token`), a hook that runs before
every request, or a middleware. What is reported lets a caller through whom the check was written to stop: a
default that allows, an error that allows, a switch, a prefix of a path, a comparison of a value with itself, a
result that nobody looks at.
"""

import ast
import re
from collections.abc import Iterator

from agents.api.finding import Finding, Severity
from agents.detectors.audit.per_file import python_files
from agents.detectors.audit.python_module import FunctionNode, PythonModule
from agents.detectors.detector import Detector, DetectorContext
from agents.detectors.python_names import argument, constant, is_true
from agents.detectors.rule_file import RuleEntry, RuleFile
from agents.detectors.security.request_data import client_values, is_client_value
from agents.workspace.workspace import Workspace

RULES = RuleFile(__file__, "check_bypass", entry=RuleEntry)

_SUBJECT = (
    r"(auth\w*|admin\w*|allowed|permi\w+|permission\w*|access|role\w*|owner|login|logged_in|token|password|credential\w*|"
    r"signature|session|user|staff|superuser|scope\w*|api_?key|privilege\w*|right\w*)"
)
_CHECK_NAME = re.compile(
    rf"^_*(is|has|have|check|verify|require[sd]?|ensure|validate|assert)_(\w+_)?{_SUBJECT}(_\w+)?$"
    r"|^_*(can|may)_(?!raise|be_|connect|fetch|parse|skip|reach|change_|fast|start|close|wait|send|match)\w+$"
    r"|^_*(authenticate|authori[sz]e|authenticated|authori[sz]ed|login_required|admin_required|is_valid_token)(_\w+)?$"
)
_LOGIN = re.compile(r"^_*(log|sign)_?in(_\w+)?$")
_PROOF = re.compile(
    r"(?i)passw|pwd|secret|token|code|otp|auth(?!or)|verif|check|credential|saml|oidc|sso|signature|cert|ldap|hash|"
    r"pin\b|key|valid|callback|flow|challenge|assert"
)
"""What a login proves somebody by; a function that has none of these words proves nothing."""
_EXPIRY = re.compile(r"(?i)(^|_)(expir\w*|exp|valid_until|not_after|expires_at)$")
_NOW = re.compile(r"(?i)(^|[._])(now|utcnow|time|today|timestamp|current_time)(\(.*\))?$")
_HOOK = re.compile(r"before_(app_)?request|middleware|before_serving|on_request")
_RIGHT = re.compile(
    r"^(is_)?(admin|administrator|superuser|staff|authenticated|authori[sz]ed|logged_in)$|^is_root$"
    r"|^has_(perm|permission|access|role|right)s?$|^is_(allowed|permitted|owner)$"
)
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
_CHECK_DECORATOR = re.compile(
    r"(?i)(login|auth|admin|permission|role|token|jwt|scope|fresh|staff|user|access|api_?key)\w*_?(required|needed)$|"
    r"^(require[sd]?|needs?|ensure)_?\w*(login|auth|admin|permission|role|token|user|scope|access)\w*$|"
    r"^(authenticated|protected|admin_only|permission_required|requires?)$"
)
_EVERY_PATH = re.compile(r"\b(request|req|self\.request)\.(path|full_path|url\.path|path_info|path_url|url|rel_url\.path)$|"
                         r"scope\[['\"]path['\"]\]$|environ\[['\"]PATH_INFO['\"]\]$")  # fmt: skip
_CONFIRMATION = re.compile(
    r"(?i)confirm|repeat|again|password_?2|retype|verify_password|_2$|new_|old_"
)


def _detect(workspace: Workspace, context: DetectorContext) -> Iterator[Finding]:
    for module in python_files(workspace, context, tests=False):
        for function in module.functions:
            if _is_check(function):
                yield from _open_errors(module, function)
                yield from _early_grant(module, function)
            if _is_check(function) or _LOGIN.search(function.name):
                yield from _empty_values(module, function)
            yield from _inverted_expiry(module, function)
            yield from _login_by_name(module, function)
            if _is_check(function) or _is_guard(module, function):
                yield from _switches(module, function)
                yield from _paths(module, function)
            yield from _above_route(module, function)
        yield from _defaults(module)
        yield from _assertions(module)
        yield from _of_itself(module)
        yield from _ignored(module)
        yield from _inverted(module)


def _is_check(function: FunctionNode) -> bool:
    return _CHECK_NAME.search(function.name) is not None


def _is_guard(module: PythonModule, function: FunctionNode) -> bool:
    """Whether a function stands in front of others: a hook, a middleware, the wrapper of a decorator."""
    if any(_HOOK.search(ast.unparse(one)) for one in function.decorator_list):
        return True
    owner = module.class_of(function)
    if owner is not None and function.name in (
        "dispatch",
        "__call__",
        "process_request",
        "process_view",
    ):
        return bool(re.search(r"(?i)auth|login|permission|guard", owner.name))
    outer = module.function_of(function)
    return outer is not None and bool(
        _CHECK_DECORATOR.search(outer.name) or _CHECK_NAME.search(outer.name)
    )


def _body(function: FunctionNode) -> list[ast.stmt]:
    """Its statements without the docstring."""
    first = function.body[0]
    documented = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    return function.body[1:] if documented else function.body


def _own(function: FunctionNode) -> Iterator[ast.AST]:
    """The nodes of a function without those of functions within it."""
    stack: list[ast.AST] = [*function.body]
    while stack:
        node = stack.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            stack += ast.iter_child_nodes(node)


def _grants(statement: ast.stmt) -> bool:
    """Whether a statement returns that the check passed."""
    return isinstance(statement, ast.Return) and is_true(statement.value)


def _open_errors(module: PythonModule, function: FunctionNode) -> Iterator[Finding]:
    """`except …: return True`, and `except …: pass` before the `return True` at the end."""
    ends_open = _grants(function.body[-1])
    for node in _own(function):
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
    body = _body(function)
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
    for node in _own(function):
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
    check, refuses = _is_check(function), _refuses(function)
    for node in _own(function):
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
        if flag and (check or _refuses(function)):
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
    check, refuses = _is_check(function), _refuses(function)
    for node in _own(function):
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


def _above_route(module: PythonModule, function: FunctionNode) -> Iterator[Finding]:
    """A check above the decorator that registers the function, which registers it without the check."""
    names = [_decorator(one) for one in function.decorator_list]
    routes = [number for number, one in enumerate(function.decorator_list) if _registers(one)]
    for number, name in enumerate(names):
        if routes and number < routes[-1] and _CHECK_DECORATOR.search(name.rpartition(".")[2]):
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


def _defaults(module: PythonModule) -> Iterator[Finding]:
    """`PERMISSIONS.get(action, True)`, `getattr(user, "is_admin", True)`."""
    for call, name in module.calls:
        if name == "getattr" and len(call.args) == 3 and is_true(call.args[2]):
            key = constant(call.args[1])
            # Objects of users without the attribute is_authenticated are older than it.
            if isinstance(key, str) and _RIGHT.search(key) and key != "is_authenticated":
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
            if isinstance(key, str) and _RIGHT.search(key):
                text = f"Whoever has no {key} is taken to have it."
            elif _RIGHTS_TABLE.search(table) or (
                returned
                and function is not None
                and _is_check(function)
                and not isinstance(key, str)
            ):
                text = "What is not in the table is allowed."
            else:
                continue
            yield RULES["allowed-by-default"].at(module.file, call.lineno, text)


def _assertions(module: PythonModule) -> Iterator[Finding]:
    for node in module.of(ast.Assert):
        words = [
            one.attr if isinstance(one, ast.Attribute) else one.id
            for one in ast.walk(node.test)
            if isinstance(one, ast.Attribute | ast.Name)
        ]
        roles = isinstance(node.test, ast.Compare) and _names_role(node.test.left)
        known = "nosec" in module.file.quote(node.lineno)
        if not known and (roles or any(_RIGHT.search(one) for one in words)):
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
    for function in module.functions:
        values = client_values(module, function)
        for node in _own(function):
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
    predicates = {one.name for one in module.functions if _is_predicate(one) and _is_check(one)}
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
    returns = [one for one in _own(function) if isinstance(one, ast.Return)]
    if not returns or any(isinstance(one, ast.Raise) for one in _own(function)):
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
    if not _LOGIN.search(function.name):
        return
    values = client_values(module, function)
    reads = any(
        isinstance(one, ast.expr) and is_client_value(one, values) for one in _own(function)
    )
    written = ast.unparse(ast.Module(body=_body(function), type_ignores=[]))
    if not reads or _PROOF.search(written):
        return
    for node in _own(function):
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
    body = _body(function)
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
    return name if _RIGHT.search(name) else ""


BYPASSES = Detector(
    "bypasses",
    "Looks for ways around checks: defaults and errors that allow, switches, prefixes of paths, dropped results.",
    _detect,
    RULES,
)
