"""Missing and weak checks of who may do something: routes, tokens, cookies, comparisons."""

import ast
import re
from collections.abc import Iterator

from agents.api.finding import Finding
from agents.detectors.audit.per_file import python_files
from agents.detectors.audit.python_module import PythonModule
from agents.detectors.detector import Detector, DetectorContext
from agents.detectors.python_names import argument, constant, is_false, is_true
from agents.detectors.rule_file import RuleFile
from agents.detectors.security.pattern_rules import PatternRule, matching_calls
from agents.detectors.security.secret_names import compares_secrets
from agents.detectors.security.tree_authentication import tree_findings
from agents.workspace.workspace import Workspace

RULES = RuleFile(__file__, "authentication", entry=PatternRule)

_PASSWORD = re.compile(r"passw(or)?d|passphrase|\bpwd\b", re.I)


def _detect(workspace: Workspace, context: DetectorContext) -> Iterator[Finding]:
    for module in python_files(workspace, context, tests=False):
        yield from _calls(module)
        yield from _comparisons(module)
        yield from _settings(module)
    yield from matching_calls(RULES, workspace, context)
    yield from tree_findings(RULES, workspace, context)


def _calls(module: PythonModule) -> Iterator[Finding]:
    for call, name in module.calls:
        if name in ("jwt.decode", "jose.jwt.decode", "jwt.decode_complete"):
            yield from _token_read(module, call)
        elif name in _UNVERIFIED:
            text = f"{name.rpartition('.')[2]} does not check the signature: use decode."
            yield RULES["unverified-token"].at(module.file, call.lineno, text)
        elif name in ("jwt.encode", "jose.jwt.encode"):
            payload = argument(call, 0, "payload", "claims")
            if isinstance(payload, ast.Dict):
                keys = {constant(key) for key in payload.keys if key is not None}
                if "exp" not in keys and None not in payload.keys:
                    yield RULES["token-expiry"].at(module.file, call.lineno)
            yield from _token_made(module, call)
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
                yield RULES["cookie-flags"].at(module.file, call.lineno, text)
        elif name.endswith("csrf_exempt"):
            yield RULES["csrf-off"].at(module.file, call.lineno)
        elif name.endswith(".run") and is_true(argument(call, None, "debug")):
            text = "The debugger lets visitors run code: read debug from the environment."
            yield RULES["debug-mode"].at(module.file, call.lineno, text)
    for function in module.functions:
        yield from _token_taken_apart(module, function)
        for one in function.decorator_list:
            if isinstance(one, ast.Name | ast.Attribute) and module.names.resolve(one).endswith(
                "csrf_exempt"
            ):
                yield RULES["csrf-off"].at(module.file, one.lineno)


def _token_made(module: PythonModule, call: ast.Call) -> Iterator[Finding]:
    key = argument(call, 1, "key")
    if isinstance(key, ast.Name):
        key = module.constants.get(key.id, key)
    algorithm = constant(argument(call, 2, "algorithm"))
    if isinstance(algorithm, str) and algorithm.lower() == "none":
        text = "The algorithm none makes tokens that anybody can write."
        yield RULES["unverified-token"].at(module.file, call.lineno, text)
    elif isinstance(key, ast.Constant) and isinstance(key.value, str | bytes) and key.value:
        text = "Whoever reads the source signs tokens: load the key from the environment."
        yield RULES["hardcoded-signing-key"].at(
            module.file, call.lineno, text, evidence='jwt.encode(… "…")'
        )


def _token_read(module: PythonModule, call: ast.Call) -> Iterator[Finding]:
    options = argument(call, None, "options")
    if isinstance(options, ast.Name):
        options = module.constants.get(options.id, options)
    written = "" if options is None else ast.unparse(options)
    off = re.search(r"['\"]verify_(signature|aud|exp)['\"]: False", written)
    if is_false(argument(call, None, "verify")) or (off and off[1] == "signature"):
        yield RULES["unverified-token"].at(
            module.file, call.lineno, "The token's signature is not checked."
        )
        return
    if off:
        yield RULES["token-expiry"].at(
            module.file, call.lineno, f"The claim {off[1]} is not checked."
        )
    algorithms = argument(call, 2, "algorithms")
    if algorithms is None:
        yield RULES["token-algorithms"].at(module.file, call.lineno)
    elif _from_header(module, call, algorithms):
        text = "The token itself names its algorithm: name those that are accepted."
        yield RULES["token-algorithms"].at(module.file, call.lineno, text)
    elif re.search(r"['\"]none['\"]", ast.unparse(algorithms), re.I):
        text = "The algorithm none accepts any token."
        yield RULES["unverified-token"].at(module.file, call.lineno, text)


def _from_header(module: PythonModule, call: ast.Call, algorithms: ast.expr) -> bool:
    """Whether the algorithms are those that `get_unverified_header` read from the token."""
    written = [ast.unparse(algorithms)]
    for one in ast.walk(algorithms):
        if isinstance(one, ast.Name) and one.id in module.constants:
            value = module.constants[one.id]
            written.append(ast.unparse(value))
            written += [
                ast.unparse(module.constants[inner.id])
                for inner in ast.walk(value)
                if isinstance(inner, ast.Name) and inner.id in module.constants
            ]
    return any("get_unverified_header" in one for one in written)


_UNVERIFIED = frozenset(
    [
        "jose.jwt.get_unverified_claims",
        "jose.jws.get_unverified_claims",
        "jwt.get_unverified_claims",
    ]
)
_TOKEN_PARTS = re.compile(r"(?i)token|jwt|bearer|authorization")
_VERIFIED = re.compile(r"(?i)verif|hmac|signature\s*[!=]=|compare_digest|public_key|jwks")


def _token_taken_apart(
    module: PythonModule, function: ast.FunctionDef | ast.AsyncFunctionDef
) -> Iterator[Finding]:
    """`token.split(".")` and the payload decoded, without a word about the signature in the module."""
    splits = None
    decodes = loads = False
    for node in ast.walk(function):
        if not isinstance(node, ast.Call):
            continue
        name = module.names.resolve(node.func)
        if isinstance(node.func, ast.Attribute) and node.func.attr in ("split", "rsplit"):
            owner = ast.unparse(node.func.value)
            if constant(argument(node, 0)) == "." and _TOKEN_PARTS.search(owner):
                splits = node
        decodes = decodes or name.rpartition(".")[2] in ("urlsafe_b64decode", "b64decode")
        loads = loads or name.rpartition(".")[2] == "loads"
    if splits is not None and decodes and loads and not _VERIFIED.search(_code_of(module)):
        text = "The token is read without checking its signature."
        yield RULES["unverified-token"].at(module.file, splits.lineno, text, confidence=0.8)


def _code_of(module: PythonModule) -> str:
    """The names and texts of a module that say what it does: its code without comments."""
    return ast.unparse(module.tree)


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
    for node in module.of(ast.Compare):
        if len(node.ops) != 1:
            continue
        if not isinstance(node.ops[0], ast.Eq | ast.NotEq):
            continue
        sides = node.left, node.comparators[0]
        names = [_name_of(side) for side in sides]
        literals = [constant(side) for side in sides if isinstance(side, ast.Constant)]
        if any(value in ("", None, True, False) or isinstance(value, int) for value in literals):
            continue
        if isinstance(node.left, ast.Attribute) and names[0] == names[1]:
            continue  # two objects compared member by member
        function = module.function_of(node)
        if function is not None and function.name in ("__eq__", "__ne__"):
            continue
        if any(_PASSWORD.search(name) for name in names):
            if any(re.search(r"confirm|repeat|again|2\b|new|old", name, re.I) for name in names):
                continue
            if literals and not (isinstance(literals[0], str) and re.search(r"\w{3}", literals[0])):
                continue
            if literals:
                text = "The password is part of the code."
                yield RULES["default-credentials"].at(module.file, node.lineno, text, evidence="…")
            elif any(
                isinstance(side, ast.Call)
                and re.search(
                    r"hash|digest|crypt|derive|pbkdf|scrypt", ast.unparse(side.func), re.I
                )
                for side in sides
            ):
                text = "Use hmac.compare_digest: == tells by its time how much was right."
                yield RULES["timing-comparison"].at(module.file, node.lineno, text, confidence=0.6)
            else:
                text = "Passwords are compared as they are: store and check a slow hash."
                yield RULES["plain-password"].at(module.file, node.lineno, text, confidence=0.7)
        elif compares_secrets(names[0], names[1], module.file.text):
            if literals:
                continue  # a keyword, or a secret that the secrets detector reports
            text = "Use hmac.compare_digest: == tells by its time how much was right."
            yield RULES["timing-comparison"].at(module.file, node.lineno, text, confidence=0.6)


_SETTINGS = {
    "SESSION_COOKIE_SECURE": "cookie-flags",
    "SESSION_COOKIE_HTTPONLY": "cookie-flags",
    "CSRF_COOKIE_SECURE": "cookie-flags",
    "WTF_CSRF_ENABLED": "csrf-off",
    "REMEMBER_COOKIE_SECURE": "cookie-flags",
}


_APPLICATIONS = re.compile(
    r"(^|\.)(FastAPI|Starlette|Flask|Sanic|Application|Litestar|Quart|Debug)$"
)
_FAST_HASHERS = re.compile(
    r"\.(MD5|SHA1|UnsaltedMD5|UnsaltedSHA1|Crypt)PasswordHasher|^(plaintext|md5|sha1|hex_md5|ldap_md5)$"
)


def _settings(module: PythonModule) -> Iterator[Finding]:
    django = "INSTALLED_APPS" in module.file.text or "settings" in module.file.path
    for name, target, value in _assigned_settings(module):
        line = value.lineno
        if name in _SETTINGS and is_false(value):
            yield RULES[_SETTINGS[name]].at(module.file, line, f"{name} is off.")
        elif name == "DEBUG" and is_true(value) and (django or not isinstance(target, ast.Name)):
            yield RULES["debug-mode"].at(
                module.file, line, "DEBUG shows visitors how the program works."
            )
        elif isinstance(target, ast.Attribute) and name == "debug" and is_true(value):
            yield RULES["debug-mode"].at(module.file, line, "The debugger lets visitors run code.")
        elif name == "ALLOWED_HOSTS" and any(
            constant(one) == "*" for one in ast.walk(value) if isinstance(one, ast.Constant)
        ):
            yield RULES["any-host"].at(module.file, line)
        elif name in ("PASSWORD_HASHERS", "SECURITY_PASSWORD_HASH", "PASSWORD_SCHEMES"):
            texts = [constant(one) for one in ast.walk(value) if isinstance(one, ast.Constant)]
            if texts and isinstance(texts[0], str) and _FAST_HASHERS.search(texts[0]):
                yield RULES["fast-password-hash"].at(
                    module.file, line, f"{texts[0]} is guessed quickly: use argon2 or PBKDF2."
                )
    for call, name in module.calls:
        if name in ("jinja2.Environment", "jinja2.sandbox.SandboxedEnvironment"):
            escapes = argument(call, None, "autoescape")
            if (escapes is None or is_false(escapes)) and not any(
                one.arg is None for one in call.keywords
            ):
                text = "Templates of pages are not escaped: set autoescape=True, or select_autoescape()."
                yield RULES["no-autoescape"].at(module.file, call.lineno, text, confidence=0.6)
        if _APPLICATIONS.search(name) and is_true(argument(call, None, "debug")):
            yield RULES["debug-mode"].at(
                module.file, call.lineno, "Debug mode shows visitors how the program works."
            )


def _assigned_settings(module: PythonModule) -> Iterator[tuple[str, ast.expr | None, ast.expr]]:
    """Names of settings with what they are set to: assignments, `update(NAME=…)` and entries of dictionaries."""
    for node in module.of(ast.Assign, ast.AnnAssign, ast.keyword, ast.Dict):
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            yield _name_of(node.targets[0]), node.targets[0], node.value
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            yield _name_of(node.target), node.target, node.value
        elif isinstance(node, ast.keyword) and node.arg and node.arg.isupper():
            yield node.arg, None, node.value
        elif isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                name = constant(key)
                if isinstance(name, str) and name.isupper():
                    yield name, None, value


AUTHENTICATION = Detector(
    "authentication",
    "Looks for weak token options, cookies, settings and comparisons of secrets.",
    _detect,
    RULES,
)
