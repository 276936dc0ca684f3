"""The detector `access`: routes without a check of who asks, rights taken from the client, records of others.

A route that changes something is reported as severe if its words or its neighbours show that it should be
checked: it deletes, administers or pays, or other routes of the program are checked. In a program in which
no route is checked at all, the others are noted only.
"""

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from agents.api.finding import Finding, Severity
from agents.detectors.audit.per_file import python_files
from agents.detectors.audit.python_module import PythonModule
from agents.detectors.detector import Detector, DetectorContext
from agents.detectors.python_names import argument, constant
from agents.detectors.rule_file import JAVASCRIPT, RuleEntry, RuleFile
from agents.detectors.security.request_data import client_values, requested_key
from agents.detectors.security.tree_code import TreeCode, tree_code, tree_files
from agents.workspace.source_file import SourceFile
from agents.workspace.workspace import Workspace

_HIGH, _MEDIUM, _LOW = Severity.HIGH, Severity.MEDIUM, Severity.LOW
RULES = RuleFile(__file__, "access", entry=RuleEntry)

_CHECKS = re.compile(
    r"login_?(required|check)|logged_?in|signed_?in|is_?auth|auth|permission|require[sd]?_?(login|user|admin|role|token|scope)|"
    r"_required|\brequires?\b|\bneeds?\b|jwt|token|admin_only|protected|current_?user|verify|session|guard|\bscopes?\b|\broles?\b|api_?key|"
    r"security|principal|identity|ensure\w*|isAdmin|middleware|passport",
    re.IGNORECASE,
)
_PUBLIC = re.compile(
    r"log_?in|log_?out|sign_?in|sign_?up|regist(er|ration)|health|\bping\b|ready|status|metrics|static|favicon|\bindex|"
    r"forgot|reset|webhook|callback|oauth|\bdocs?\b|public|robots|about|version|contact|newsletter|token|csrf|graphql",
    re.IGNORECASE,
)
_SENSITIVE = re.compile(
    r"admin|delete|remove|user|account|order|payment|\bpay\b|transfer|config|setting|export|internal|private|upload|"
    r"balance|invoice|secret|backup|password|profile|refund|grant|role|reindex|debug|shutdown",
    re.IGNORECASE,
)
_PRIVATE = re.compile(
    r"(?i)admin|secret|backup|internal|private|export|config|invoice|debug|password"
)
_WRITES = frozenset(["post", "put", "patch", "delete"])
_ROLE = r"(role|roles|is_?admin|admin|is_?staff|is_?superuser|user_?role|permissions?|privilege|access_?level|x-role|x-user-role|x-admin|x-is-admin)"
_ROLE_KEY = re.compile(rf"^{_ROLE}$", re.I)
_CLIENT_ROLE_TEXT = re.compile(
    rf"\b(req|request|ctx)\.(query|body|params|headers|cookies)(\.{_ROLE}\b|\[\s*['\"]{_ROLE}['\"]\s*\])"
    rf"|\b(c|ctx)\.(Query|GetHeader|FormValue|PostForm|Cookie)\(\s*\"{_ROLE}\"|\br\.(FormValue|Header\.Get)\(\s*\"{_ROLE}\"",
    re.I,
)
_OWNER = re.compile(
    r"owner|user_id|session|current_user|\bg\.user|request\.user|is_author|belongs|tenant|account_of",
    re.I,
)


@dataclass(frozen=True, slots=True)
class _Route:
    """A route: where it is, what it answers, and whether something checks who asks."""

    file: SourceFile
    line: int
    end_line: int
    methods: frozenset[str]
    path: str
    words: str
    checked: bool


def _detect(workspace: Workspace, context: DetectorContext) -> Iterator[Finding]:
    routes: list[_Route] = []
    for module in python_files(workspace, context, tests=False):
        routes += _python_routes(module)
        yield from _python_roles(module)
        yield from _open_views(module)
        yield from _foreign_records(module)
    for file in tree_files(workspace, context, (*JAVASCRIPT, "go")):
        code = tree_code(file)
        if file.language != "go":
            routes += _script_routes(code)
        yield from _script_roles(code)
    for route in routes:
        if not route.checked and _should_be_checked(route):
            yield _missing(route, _mostly_checked(routes, route.file))


def _mostly_checked(routes: list[_Route], file: SourceFile) -> bool:
    """Whether at least half of a file's routes that change something are checked."""
    writing = [one.checked for one in routes if one.file is file and one.methods & _WRITES]
    return sum(writing) * 2 >= len(writing) > 0


def _should_be_checked(route: _Route) -> bool:
    if _PUBLIC.search(route.words) and not re.search(r"(?i)admin|internal|private", route.words):
        return False
    return bool(route.methods & _WRITES or _SENSITIVE.search(route.words))


def _missing(route: _Route, mostly_checked: bool) -> Finding:
    writes = route.methods & _WRITES
    if writes and (mostly_checked or "delete" in writes or _SENSITIVE.search(route.words)):
        severity = _HIGH
    elif not writes and _PRIVATE.search(route.words):
        severity = _MEDIUM
    else:
        severity = _LOW
    what = ", ".join(sorted(writes)).upper() or "GET"
    return RULES["missing-authentication"].at(
        route.file,
        route.line,
        f"{what} {route.path} is open to everybody: check who asks.",
        end_line=route.end_line,
        severity=severity,
        confidence=0.6 if writes else 0.5,
    )


def _python_routes(module: PythonModule) -> Iterator[_Route]:
    """Flask, FastAPI, Starlette, Sanic and aiohttp routes."""
    everywhere = re.search(
        r"before_request|(APIRouter|FastAPI|include_router)\([^)]*dependencies\s*=\s*\[|add_middleware\([^)]*Auth|"
        r"AuthenticationMiddleware|LoginRequiredMixin|permission_classes|DEFAULT_PERMISSION_CLASSES",
        module.file.text,
    )
    for node in module.functions:
        route = next((one for one in node.decorator_list if _is_route(one)), None)
        if not isinstance(route, ast.Call):
            continue
        path = str(constant(argument(route, 0, "path", "rule")) or "")
        method = route.func.attr.lower() if isinstance(route.func, ast.Attribute) else ""
        methods = {method} & _WRITES
        listed = argument(route, None, "methods")
        if isinstance(listed, ast.List | ast.Tuple | ast.Set):
            methods |= {str(constant(one)).lower() for one in listed.elts} & _WRITES
        checked = bool(everywhere) or bool(_CHECKS.search(_python_checks(node, route)))
        yield _Route(
            module.file,
            route.lineno,
            node.lineno,
            frozenset(methods),
            path or node.name,
            f"{path} {node.name}",
            checked,
        )


def _python_checks(node: ast.FunctionDef | ast.AsyncFunctionDef, route: ast.Call) -> str:
    """The text around a route in which a check may stand: decorators, dependencies, calls."""
    parameters = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    texts = [
        ast.unparse(one) for one in (*node.decorator_list, *route.keywords) if one is not route
    ]
    texts += [ast.unparse(one) for one in (*node.args.defaults, *node.args.kw_defaults) if one]
    texts += [ast.unparse(one.annotation) for one in parameters if one.annotation]
    texts += [one.arg for one in parameters if one.arg in ("user", "current_user")]
    for one in ast.walk(node):
        if isinstance(one, ast.Call):
            name = ast.unparse(one.func)
            if "db.session" not in name and not name.endswith(("session.add", "session.commit")):
                texts.append(name)
        elif isinstance(one, ast.Attribute) and one.attr in (
            "is_authenticated",
            "current_user",
            "authorization",
        ):
            texts.append(one.attr)
        elif isinstance(one, ast.Name) and one.id in ("current_user", "session"):
            texts.append(one.id)
    return " ".join(texts).replace("request.", "")


def _is_route(node: ast.expr) -> bool:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    first = constant(argument(node, 0, "path", "rule"))
    names = ("route", "get", "post", "put", "patch", "delete", "api_route", "websocket")
    return node.func.attr in names and isinstance(first, str) and first.startswith("/")


_CHANGING = frozenset(["delete", "destroy", "put", "patch", "update", "partial_update"])


def _open_views(module: PythonModule) -> Iterator[Finding]:
    """Views of Django REST framework that change or delete, and let everybody do it."""
    for owner in module.of(ast.ClassDef):
        if _PUBLIC.search(owner.name):
            continue
        for node in owner.body:
            if (
                not isinstance(node, ast.Assign)
                or ast.unparse(node.targets[0]) != "permission_classes"
            ):
                continue
            if not isinstance(node.value, ast.List | ast.Tuple):
                continue
            names = [ast.unparse(one).rpartition(".")[2] for one in node.value.elts]
            methods = {one.name for one in owner.body if isinstance(one, ast.FunctionDef)}
            changes = methods & _CHANGING or any(
                ast.unparse(one).endswith(("ModelViewSet", "DestroyAPIView")) for one in owner.bases
            )
            if changes and (not names or names == ["AllowAny"]):
                yield RULES["missing-authentication"].at(
                    module.file,
                    node.lineno,
                    f"{owner.name} lets everybody change and delete: name who may.",
                    severity=_HIGH,
                    confidence=0.7,
                )


def _python_roles(module: PythonModule) -> Iterator[Finding]:
    """`request.args.get("role") == "admin"`, `if request.json["is_admin"]:`, also by way of a name."""
    if "request" not in module.file.text:
        return
    of_function: dict[ast.AST | None, Mapping[str, ast.expr]] = {None: {}}
    for node in module.of(ast.Compare, ast.If, ast.IfExp, ast.While, ast.BoolOp):
        tests: list[ast.expr] = []
        if isinstance(node, ast.Compare):
            tests = [node.left, *node.comparators]
        elif isinstance(node, ast.If | ast.IfExp | ast.While):
            tests = [node.test]
        elif isinstance(node, ast.BoolOp):
            tests = node.values
        function = module.function_of(node)
        if function is not None and function not in of_function:
            of_function[function] = client_values(module, function)
        values = of_function[function]
        for one in tests:
            source = values.get(one.id, one) if isinstance(one, ast.Name) else one
            key = requested_key(source, values)
            if key and _ROLE_KEY.match(key):
                text = f"The client sends {key} itself: take it from the session or the database."
                yield RULES["client-supplied-role"].at(module.file, one.lineno, text)


_LOOKUPS = re.compile(
    r"\.(get|get_or_404|first_or_404|filter_by|find_one|find_by_id|get_object_or_404)$|^get_object_or_404$"
)


def _foreign_records(module: PythonModule) -> Iterator[Finding]:
    """A record fetched by an id of the address alone, where other routes of the module compare the owner."""
    routes = [
        node for node in module.functions if any(_is_route(one) for one in node.decorator_list)
    ]
    bodies = {id(node): ast.unparse(ast.Module(body=node.body, type_ignores=[])) for node in routes}
    if not any(_OWNER.search(body.replace("db.session", "")) for body in bodies.values()):
        return
    for node in routes:
        if _OWNER.search(bodies[id(node)].replace("db.session", "")) or any(
            _OWNER.search(ast.unparse(one)) or "admin" in ast.unparse(one).lower()
            for one in node.decorator_list
            if not _is_route(one)
        ):
            continue
        identifiers = {one.arg for one in node.args.args if one.arg.endswith(("id", "pk", "uuid"))}
        for call in (one for one in ast.walk(node) if isinstance(one, ast.Call)):
            values = [*call.args, *(one.value for one in call.keywords)]
            by_id = any(isinstance(one, ast.Name) and one.id in identifiers for one in values)
            name = module.names.resolve(call.func)
            if (
                by_id
                and _LOOKUPS.search(name)
                and not re.search(r"cache|redis|config|headers|environ", name)
            ):
                text = "Whoever is signed in reads any record by its number: compare its owner."
                yield RULES["foreign-record"].at(
                    module.file, call.lineno, text, end_line=call.end_lineno, confidence=0.5
                )
                break


def _script_routes(code: TreeCode) -> Iterator[_Route]:
    """Routes of Express, Fastify and Koa: `app.post("/path", check, handler)`."""
    text = code.file.text
    everywhere = re.search(
        r"\b(app|router|server)\.use\(\s*(\w*([aA]uth|passport|jwt|[rR]equireLogin|verifyToken|isLoggedIn|ensure\w+)\w*)",
        text,
    )
    for call in code.calls:
        found = re.fullmatch(
            r"(?:\w+\.)*(?:app|router|server|fastify|api|\w+Router|routes)\.(get|post|put|patch|delete)",
            call.name,
        )
        if found is None or len(call.arguments) < 2:
            continue
        path = code.text(call.arguments[0]).strip("'\"`")
        if not path.startswith("/"):
            continue
        between = [code.text(one) for one in call.arguments[1:-1]]
        handler = code.text(call.arguments[-1])
        checked = (
            bool(everywhere)
            or any(_CHECKS.search(one) for one in between)
            or bool(
                re.search(
                    r"\breq\.(user|session|auth)\b|res\.locals\.user|jwt\.verify|isAuthenticated|verifyToken|(?i:check|require|ensure)(Auth|User|Login|Admin|Session)",
                    handler,
                )
            )
        )
        name = handler if re.fullmatch(r"[\w.]+", handler) else ""
        yield _Route(
            code.file, call.line, call.line, frozenset([found[1]]), path, f"{path} {name}", checked
        )


def _script_roles(code: TreeCode) -> Iterator[Finding]:
    seen: set[int] = set()
    for node in code.of_type("binary_expression"):
        text = code.text(node)
        if len(text) > 400 or code.line(node) in seen:
            continue
        if _CLIENT_ROLE_TEXT.search(text) and re.search(r"[=!]==?", text):
            seen.add(code.line(node))
            yield RULES["client-supplied-role"].at(
                code.file,
                code.line(node),
            )
    for number, line in enumerate(code.file.lines, 1):
        if (
            number not in seen
            and len(line) < 500
            and re.search(r"\bif\s*\(", line)
            and _CLIENT_ROLE_TEXT.search(line)
        ):
            yield RULES["client-supplied-role"].at(
                code.file,
                number,
            )


ACCESS = Detector(
    "access",
    "Looks for routes without checks, rights that clients claim, and records of others.",
    _detect,
    RULES,
)
