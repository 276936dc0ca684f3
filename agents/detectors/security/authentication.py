"""Missing and weak checks of who may do something: routes, tokens, cookies, comparisons."""

import ast
import re
from collections.abc import Iterator

from agents.api.finding import Finding, Severity
from agents.detectors.detector import Detector, DetectorContext, Rule
from agents.detectors.security.call_rules import JAVASCRIPT, CallRule, matching_calls
from agents.detectors.security.python_files import is_test_path, python_modules
from agents.detectors.security.python_names import (
    PythonModule,
    argument,
    constant,
    is_false,
    is_true,
)
from agents.workspace.workspace import Workspace

_HIGH, _MEDIUM = Severity.HIGH, Severity.MEDIUM
MISSING_CHECK = Rule("missing-authentication", _HIGH, "Route without a check", cwe=306)
UNVERIFIED_TOKEN = Rule("unverified-token", Severity.CRITICAL, "Token not verified", cwe=347)
NO_ALGORITHMS = Rule("token-algorithms", _HIGH, "Token algorithm not fixed", cwe=347)
NO_EXPIRY = Rule("token-expiry", _MEDIUM, "Token without an expiry", cwe=613)
TIMING = Rule("timing-comparison", _MEDIUM, "Secret compared in variable time", cwe=208)
PLAIN_PASSWORD = Rule("plain-password", _HIGH, "Password compared in plain text", cwe=256)
DEFAULT_CREDENTIALS = Rule("default-credentials", _HIGH, "Credentials in the code", cwe=798)
COOKIE_FLAGS = Rule("cookie-flags", _MEDIUM, "Session cookie without protection", cwe=614)
CSRF_OFF = Rule("csrf-off", _HIGH, "Protection against forged requests off", cwe=352)
DEBUG = Rule("debug-mode", _HIGH, "Debug mode on", cwe=489)
RULES = (
    MISSING_CHECK, UNVERIFIED_TOKEN, NO_ALGORITHMS, NO_EXPIRY, TIMING, PLAIN_PASSWORD, DEFAULT_CREDENTIALS,
    COOKIE_FLAGS, CSRF_OFF, DEBUG,
)  # fmt: skip

_CHECKS = re.compile(
    r"login|auth|permission|require[sd]?_|_required|jwt|token|admin_only|protected|current_user|verify|"
    r"authenticated|session|guard|scope|role|api_?key|security|principal|identity",
    re.IGNORECASE,
)
_PUBLIC = re.compile(
    r"login|log_in|signin|sign_in|signup|register|health|ping|ready|status|metrics|static|favicon|index|home|"
    r"logout|forgot|reset|webhook|callback|oauth|docs|public|robots|about|version|contact|newsletter|token",
    re.IGNORECASE,
)
_SENSITIVE = re.compile(
    r"admin|delete|remove|user|account|order|payment|transfer|config|setting|export|internal|private|upload|"
    r"balance|invoice|secret|backup|password|profile|refund|grant|role",
    re.IGNORECASE,
)
_WRITES = frozenset(["post", "put", "patch", "delete"])
_SECRET = re.compile(
    r"(password|passwd|passphrase|secret|token|signature|digest|hmac|api_?key|csrf|otp|mac)\b|_sig\b",
    re.I,
)
_PASSWORD = re.compile(r"passw(or)?d|passphrase|\bpwd\b", re.I)
_JS = (
    CallRule(JAVASCRIPT, r"\bjwt\.decode$|\bdecode$(?<=jwtDecode)", UNVERIFIED_TOKEN,
             "jwt.decode does not check the signature: use jwt.verify."),
    CallRule(JAVASCRIPT, r"\bjwt\.verify$|\bjsonwebtoken\.verify$", UNVERIFIED_TOKEN,
             "The algorithm none accepts any token.", arguments=r"['\"]none['\"]"),
    CallRule(JAVASCRIPT, r"\bjwt\.sign$|\bjsonwebtoken\.sign$", NO_EXPIRY,
             "The token never expires: set expiresIn.", unless=r"expiresIn|\bexp\b"),
    CallRule(JAVASCRIPT, r"\bcookie$|\bsession$|\bsetCookie$", COOKIE_FLAGS,
             "The cookie is readable by scripts or sent without TLS.",
             arguments=r"(httpOnly|secure)\s*:\s*false"),
)  # fmt: skip


def _detect(workspace: Workspace, context: DetectorContext) -> Iterator[Finding]:
    for module in python_modules(workspace, context):
        if is_test_path(module.file.path):
            continue
        yield from _routes(module)
        yield from _calls(module)
        yield from _comparisons(module)
        yield from _settings(module)
    yield from _express_routes(workspace, context)
    yield from matching_calls(_JS, workspace, context)


def _routes(module: PythonModule) -> Iterator[Finding]:
    """Flask, FastAPI, Starlette and aiohttp routes that change state or are sensitive and unchecked."""
    text = module.file.text
    global_check = re.search(
        r"before_request|dependencies\s*=\s*\[|add_middleware\([^)]*Auth|AuthenticationMiddleware|"
        r"LoginRequiredMixin|permission_classes|DEFAULT_PERMISSION_CLASSES",
        text,
    )
    if global_check:
        return
    for node in ast.walk(module.tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        route = next((one for one in node.decorator_list if _is_route(one)), None)
        if not isinstance(route, ast.Call):
            continue
        path = str(constant(argument(route, 0, "path", "rule")) or "")
        method = route.func.attr.lower() if isinstance(route.func, ast.Attribute) else ""
        methods = {method} & _WRITES
        listed = argument(route, None, "methods")
        if isinstance(listed, ast.List | ast.Tuple | ast.Set):
            methods |= {str(constant(one)).lower() for one in listed.elts} & _WRITES
        words = f"{path} {node.name}"
        if _PUBLIC.search(words) or not (methods or _SENSITIVE.search(words)):
            continue
        others = [one for one in node.decorator_list if one is not route]
        checks = [ast.unparse(one) for one in (*others, *route.keywords)]
        checks += [ast.unparse(one) for one in (*node.args.defaults, *node.args.kw_defaults) if one]
        checks += [ast.unparse(one.annotation) for one in _arguments(node) if one.annotation]
        checks += [one.arg for one in _arguments(node) if one.arg in ("user", "current_user")]
        checks += [_called_names(node)]
        if not _CHECKS.search(" ".join(checks).replace("request.", "")):
            yield MISSING_CHECK.at(
                module.file,
                node.lineno,
                f"{', '.join(sorted(methods)).upper() or 'GET'} {path or node.name} is open to everybody.",
                severity=_HIGH if methods else _MEDIUM,
                confidence=0.6 if methods else 0.5,
                evidence=module.file.quote(route.lineno, node.lineno),
            )


def _arguments(node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.arg]:
    return [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]


def _called_names(node: ast.AST) -> str:
    called = [ast.unparse(one.func) for one in ast.walk(node) if isinstance(one, ast.Call)]
    used = [one.attr for one in ast.walk(node) if isinstance(one, ast.Attribute)]
    names = [
        *called,
        *(one for one in used if one in ("is_authenticated", "current_user", "authorization")),
    ]
    return " ".join(one for one in names if not one.startswith("db.session"))


def _is_route(node: ast.expr) -> bool:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    first = constant(argument(node, 0, "path", "rule"))
    names = ("route", "get", "post", "put", "patch", "delete", "api_route", "websocket")
    return node.func.attr in names and isinstance(first, str) and first.startswith("/")


_EXPRESS = re.compile(
    r"\b(?:app|router|server|fastify)\.(post|put|patch|delete)\(\s*(['\"`])(/[^'\"`]*)\2\s*,\s*(.*)"
)


def _express_routes(workspace: Workspace, context: DetectorContext) -> Iterator[Finding]:
    for file in workspace.of("javascript", "typescript"):
        context.check_cancelled()
        if is_test_path(file.path) or re.search(
            r"\.use\([^)]*(auth|passport|jwt|session)", file.text, re.I
        ):
            continue
        for number, line in enumerate(file.lines, 1):
            match = _EXPRESS.search(line)
            if match is None or _PUBLIC.search(match[3]):
                continue
            handlers = match[4].split("=>")[0].split("function")[0]
            body = "\n".join(file.lines[number - 1 : number + 12])
            if not _CHECKS.search(handlers) and not re.search(r"req\.(user|session|auth)\b", body):
                text = f"{match[1].upper()} {match[3]} is open to everybody."
                yield MISSING_CHECK.at(file, number, text, confidence=0.55)


def _calls(module: PythonModule) -> Iterator[Finding]:
    for call, name in module.calls:
        if name in ("jwt.decode", "jose.jwt.decode"):
            yield from _token_read(module, call)
        elif name in ("jwt.encode", "jose.jwt.encode"):
            payload = argument(call, 0, "payload", "claims")
            if isinstance(payload, ast.Dict):
                keys = {constant(key) for key in payload.keys if key is not None}
                if "exp" not in keys and None not in payload.keys:
                    yield NO_EXPIRY.at(module.file, call.lineno, "The token has no exp claim.")
        elif name.endswith(".set_cookie"):
            flags = {one.arg: one.value for one in call.keywords}
            weak = [flag for flag in ("httponly", "secure") if is_false(flags.get(flag))]
            first = str(constant(argument(call, 0, "key")) or "")
            session = re.search(r"sess|auth|token|sid", first, re.I)
            missing = (
                [flag for flag in ("httponly", "secure") if flag not in flags] if session else []
            )
            if weak or missing:
                text = f"The cookie {first or ''} lacks {' and '.join(weak or missing)}."
                yield COOKIE_FLAGS.at(module.file, call.lineno, text)
        elif name.endswith("csrf_exempt"):
            yield CSRF_OFF.at(module.file, call.lineno, "The view accepts forged requests.")
        elif name.endswith(".run") and is_true(argument(call, None, "debug")):
            text = "The debugger lets visitors run code: read debug from the environment."
            yield DEBUG.at(module.file, call.lineno, text)
    for node in ast.walk(module.tree):
        for one in getattr(node, "decorator_list", []):
            if isinstance(one, ast.Name | ast.Attribute) and module.names.resolve(one).endswith(
                "csrf_exempt"
            ):
                yield CSRF_OFF.at(module.file, one.lineno, "The view accepts forged requests.")


def _token_read(module: PythonModule, call: ast.Call) -> Iterator[Finding]:
    options = argument(call, None, "options")
    written = "" if options is None else ast.unparse(options)
    off = re.search(r"['\"]verify_(signature|aud|exp)['\"]: False", written)
    if is_false(argument(call, None, "verify")) or (off and off[1] == "signature"):
        yield UNVERIFIED_TOKEN.at(module.file, call.lineno, "The token's signature is not checked.")
        return
    if off:
        yield NO_EXPIRY.at(module.file, call.lineno, f"The claim {off[1]} is not checked.")
    algorithms = argument(call, 2, "algorithms")
    if algorithms is None:
        yield NO_ALGORITHMS.at(
            module.file, call.lineno, "Name the algorithms that a token may have."
        )
    elif re.search(r"['\"]none['\"]", ast.unparse(algorithms), re.I):
        text = "The algorithm none accepts any token."
        yield UNVERIFIED_TOKEN.at(module.file, call.lineno, text)


def _name_of(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.Subscript):
        return str(constant(node.slice) or "")
    if isinstance(node, ast.Call):
        inner = [constant(one) for one in node.args[:1]]
        method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        return str(inner[0]) if inner and isinstance(inner[0], str) else method
    return ""


def _comparisons(module: PythonModule) -> Iterator[Finding]:
    for node in ast.walk(module.tree):
        if not isinstance(node, ast.Compare) or len(node.ops) != 1:
            continue
        if not isinstance(node.ops[0], ast.Eq | ast.NotEq):
            continue
        sides = node.left, node.comparators[0]
        names = [_name_of(side) for side in sides]
        literals = [constant(side) for side in sides if isinstance(side, ast.Constant)]
        if any(value in ("", None, True, False) or isinstance(value, int) for value in literals):
            continue
        if any(_PASSWORD.search(name) for name in names):
            if any(re.search(r"confirm|repeat|again|2\b|new|old", name, re.I) for name in names):
                continue
            if literals:
                text = "The password is part of the code."
                yield DEFAULT_CREDENTIALS.at(module.file, node.lineno, text, evidence="…")
            else:
                text = "Passwords are compared as they are: store and check a slow hash."
                yield PLAIN_PASSWORD.at(module.file, node.lineno, text, confidence=0.7)
        elif any(_SECRET.search(name) for name in names) and not any(
            re.search(r"type|kind|name|count|len|_id\b|status", name, re.I) for name in names
        ):
            if literals:
                continue  # a keyword, or a secret that the secrets detector reports
            text = "Use hmac.compare_digest: == tells by its time how much was right."
            yield TIMING.at(module.file, node.lineno, text, confidence=0.6)


_SETTINGS = {
    "SESSION_COOKIE_SECURE": COOKIE_FLAGS,
    "SESSION_COOKIE_HTTPONLY": COOKIE_FLAGS,
    "CSRF_COOKIE_SECURE": COOKIE_FLAGS,
    "WTF_CSRF_ENABLED": CSRF_OFF,
    "REMEMBER_COOKIE_SECURE": COOKIE_FLAGS,
}


def _settings(module: PythonModule) -> Iterator[Finding]:
    django = "INSTALLED_APPS" in module.file.text or "settings" in module.file.path
    for node in ast.walk(module.tree):
        if not isinstance(node, ast.Assign) or len(node.targets) != 1:
            continue
        target = node.targets[0]
        name = _name_of(target)
        if name in _SETTINGS and is_false(node.value):
            yield _SETTINGS[name].at(module.file, node.lineno, f"{name} is off.")
        elif (
            name == "DEBUG"
            and is_true(node.value)
            and (django or isinstance(target, ast.Subscript))
        ):
            yield DEBUG.at(module.file, node.lineno, "DEBUG shows visitors how the program works.")
        elif isinstance(target, ast.Attribute) and name == "debug" and is_true(node.value):
            yield DEBUG.at(module.file, node.lineno, "The debugger lets visitors run code.")


AUTHENTICATION = Detector(
    "authentication",
    "Looks for routes without checks, weak token options, cookies and comparisons of secrets.",
    _detect,
    RULES,
)
