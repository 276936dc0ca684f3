"""HTTP interfaces: OpenAPI documents without limits, mass assignment, answers that tell too much."""

import ast
import re
from collections.abc import Iterator

import yaml

from agents.api.finding import Finding, Severity
from agents.detectors.audit.per_file import python_files
from agents.detectors.audit.python_module import PythonModule, is_test_path
from agents.detectors.detector import Detector, DetectorContext
from agents.detectors.python_names import argument, constant, is_true
from agents.detectors.rule_file import RuleEntry, RuleFile
from agents.workspace.source_file import SourceFile
from agents.workspace.workspace import Workspace

_HIGH, _MEDIUM, _LOW = Severity.HIGH, Severity.MEDIUM, Severity.LOW
RULES = RuleFile(__file__, "api", entry=RuleEntry)
_METHODS = frozenset(["get", "post", "put", "patch", "delete"])
_BODY = r"(request\.(json|form|args|values|get_json\(\)|data|POST|GET)|(?:payload|body|data)\.(model_)?dict\(|" \
        r"(?:payload|body|data)\.model_dump\()"  # fmt: skip


def _detect(workspace: Workspace, context: DetectorContext) -> Iterator[Finding]:
    for file in workspace.of("yaml", "json"):
        context.check_cancelled()
        if re.search(r"[\"']?(openapi|swagger)[\"']?\s*:", file.text[:4_000]):
            yield from _openapi(file)
    for module in python_files(workspace, context, tests=False):
        yield from _python(module)
    for file in workspace.of("javascript", "typescript"):
        context.check_cancelled()
        if not is_test_path(file.path):
            yield from _script(file)


def _openapi(file: SourceFile) -> Iterator[Finding]:
    try:
        root = yaml.compose(file.text, Loader=yaml.SafeLoader)
    except (yaml.YAMLError, RecursionError, ValueError):
        return
    members = _members(root)
    seen: set[int] = set()
    global_security = "security" in members and _length(members["security"][1]) > 0
    if "servers" in members:
        for server in _items(members["servers"][1]):
            url = _members(server).get("url")
            if url and re.match(r"http://(?!localhost|127\.)", str(url[1].value)):
                yield RULES["plain-server"].at(
                    file, url[0], f"{url[1].value!s:.80} is served without TLS."
                )
    yield from openapi_security(file, root)
    paths = members.get("paths")
    for path, (_, item) in _members(paths[1]).items() if paths else ():
        for method, (line, operation) in _members(item).items():
            if method not in _METHODS:
                continue
            inner = _members(operation)
            own = inner.get("security")
            secured = global_security if own is None else _length(own[1]) > 0
            if not secured and not re.search(
                r"login|health|status|token|register|public|ping|ready", path
            ):
                severity = _HIGH if method != "get" else _MEDIUM
                text = f"{method.upper()} {path} needs no authentication."
                yield RULES["operation-without-security"].at(file, line, text, severity=severity)
            parameters = inner.get("parameters")
            for parameter in _items(parameters[1]) if parameters else ():
                schema = _members(parameter).get("schema")
                if schema:
                    yield from _schema(file, schema[1], seen)
            for key in ("requestBody",):
                if key in inner:
                    yield from _schema(file, inner[key][1], seen)
    components = members.get("components") or members.get("definitions")
    if components:
        yield from _schema(file, components[1], seen)


def openapi_security(file: SourceFile, root: yaml.Node | None) -> Iterator[Finding]:
    """Keys in addresses, secrets in answers, and operations without a scope."""
    members = _members(root)
    components = _members(members["components"][1]) if "components" in members else {}
    schemes = _members(
        components["securitySchemes"][1]
        if "securitySchemes" in components
        else members["securityDefinitions"][1]
        if "securityDefinitions" in members
        else None
    )
    scoped: set[str] = set()
    for name, (_, scheme) in schemes.items():
        inner = _members(scheme)
        kind = _text(inner, "type")
        if kind == "apiKey" and _text(inner, "in") == "query":
            line = inner["in"][0]
            yield RULES["key-in-query"].at(file, line)
        if kind in ("oauth2", "openIdConnect"):
            scoped.add(name)
    schemas = _members(components["schemas"][1] if "schemas" in components else None)
    for name, (_, schema) in schemas.items():
        if not _INPUT_SCHEMA.search(name):
            yield from _secret_members(file, schema)
    paths = members.get("paths")
    for path, (_, item) in _members(paths[1]).items() if paths else ():
        for method, (_, operation) in _members(item).items():
            security = _members(operation).get("security")
            for entry in _items(security[1]) if security and method in _METHODS - {"get"} else ():
                for wanted, (line, scopes) in _members(entry).items():
                    if (
                        wanted in scoped
                        and isinstance(scopes, yaml.SequenceNode)
                        and not scopes.value
                    ):
                        text = (
                            f"Any token may {method.upper()} {path}: name the scope that it needs."
                        )
                        yield RULES["operation-without-scope"].at(file, line, text)


_INPUT_SCHEMA = re.compile(
    r"^(New|Create|Login|Update|Register|Sign|Change)|(Request|Input|Create|Update|Login|Credentials|Form|In)$"
)
_SECRET_MEMBER = re.compile(
    r"(?i)^(password_?(hash|digest|salt)?|hashed_?password|passwd|secret(_?key)?|private_?key|salt|cvv|cvc|pin|ssn|"
    r"social_security(_number)?|mfa_?secret|totp_?secret|security_answer)$"
)


def _secret_members(file: SourceFile, schema: yaml.Node) -> Iterator[Finding]:
    properties = _members(schema).get("properties")
    for name, (line, value) in _members(properties[1]).items() if properties else ():
        if _SECRET_MEMBER.match(name) and _text(_members(value), "writeOnly").lower() != "true":
            text = f"Answers contain {name}: leave it out, or mark it writeOnly."
            yield RULES["excessive-data"].at(file, line, text, confidence=0.7)


def _text(members: dict[str, tuple[int, yaml.Node]], key: str) -> str:
    found = members.get(key)
    return str(found[1].value) if found and isinstance(found[1], yaml.ScalarNode) else ""


def _members(node: yaml.Node | None) -> dict[str, tuple[int, yaml.Node]]:
    if not isinstance(node, yaml.MappingNode):
        return {}
    return {str(key.value): (key.start_mark.line + 1, value) for key, value in node.value}


def _items(node: yaml.Node) -> list[yaml.Node]:
    return list(node.value) if isinstance(node, yaml.SequenceNode) else []


def _length(node: yaml.Node) -> int:
    return len(node.value) if isinstance(node, yaml.CollectionNode) else 0


def _schema(file: SourceFile, node: yaml.Node, seen: set[int]) -> Iterator[Finding]:
    # Aliases make a graph: without `seen`, a few lines of them take exponential time.
    if id(node) in seen:
        return
    seen.add(id(node))
    members = _members(node)
    kind = members.get("type")
    name = str(kind[1].value) if kind and isinstance(kind[1], yaml.ScalarNode) else ""
    bounds = {
        "string": ("maxLength", "enum", "format", "pattern", "const"),
        "integer": ("maximum", "enum", "format", "const"),
        "array": ("maxItems",),
    }.get(name)
    if bounds and kind and not any(bound in members for bound in bounds):
        yield RULES["unbounded-input"].at(
            file, kind[0], f"A {name} without {bounds[0]} may be as large as a client likes."
        )
    extra = members.get("additionalProperties")
    if extra and str(extra[1].value).lower() == "true" and "properties" in members:
        yield RULES["extra-properties"].at(
            file, extra[0], "Properties that nobody checks are accepted."
        )
    for _, value in members.values():
        yield from _schema(file, value, seen)
    for value in _items(node):
        yield from _schema(file, value, seen)


def _python(module: PythonModule) -> Iterator[Finding]:
    file = module.file
    yield from _unbounded_parameters(module)
    yield from _open_models(module)
    for call, name in module.calls:
        spread = [one.value for one in call.keywords if one.arg is None]
        for value in spread:
            written = ast.unparse(value)
            last = name.rpartition(".")[2]
            if re.search(_BODY, written) and (
                last[:1].isupper() or last in ("create", "update", "values")
            ):
                text = f"{last} takes every attribute that the client sends: name the allowed ones."
                yield RULES["mass-assignment"].at(file, call.lineno, text)
        if name.endswith(("__dict__.update", ".populate_obj")) and call.args:
            if re.search(_BODY, ast.unparse(call.args[0])):
                yield RULES["mass-assignment"].at(file, call.lineno)
        if name.endswith("GraphQLView.as_view") and is_true(argument(call, None, "graphiql")):
            yield RULES["introspection"].at(file, call.lineno)
        if (
            name.endswith(".limit")
            and call.args
            and re.search(r"request\.|limit|size", ast.unparse(call.args[0]))
        ):
            text = ast.unparse(call.args[0])
            if "min(" not in text and re.search(r"request\.", text):
                yield RULES["unbounded-page"].at(file, call.lineno)
    for node in module.of(ast.For, ast.Return):
        if isinstance(node, ast.For) and re.search(_BODY, ast.unparse(node.iter)):
            listed = {
                id(inner)
                for test in ast.walk(node)
                if isinstance(test, ast.If) and _is_allow_list(test.test)
                for statement in test.body
                for inner in ast.walk(statement)
            }
            if any(
                isinstance(one, ast.If)
                and _is_allow_list(one.test)
                and isinstance(one.body[-1], ast.Continue | ast.Raise)
                for one in node.body
            ):
                continue
            for inner in ast.walk(node):
                if id(inner) in listed:
                    continue
                if isinstance(inner, ast.Call) and ast.unparse(inner.func) == "setattr":
                    yield RULES["mass-assignment"].at(file, inner.lineno)
        if isinstance(node, ast.Return) and node.value is not None:
            yield from _returned(module, node)


def _is_allow_list(test: ast.expr) -> bool:
    """Whether a test compares a name with a list of permitted ones."""
    return any(
        isinstance(one, ast.Compare) and isinstance(one.ops[0], ast.In | ast.NotIn)
        for one in ast.walk(test)
    )


_COUNTS = re.compile(
    r"(?i)^(limit|rows|size|count|page_?size|per_?page|max_?results|top|take|n_?items|amount|length|num_?\w+)$"
)


def _unbounded_parameters(module: PythonModule) -> Iterator[Finding]:
    """`def report(rows: int = 1000)` of a FastAPI route: no `le=` and no `min(rows, …)`."""
    if "fastapi" not in module.file.text.lower():
        return
    for function in module.functions:
        if not any(
            isinstance(one, ast.Call)
            and isinstance(one.func, ast.Attribute)
            and one.func.attr in _METHODS
            for one in function.decorator_list
        ):
            continue
        body = " ".join(ast.unparse(one) for one in function.body)
        for parameter in (*function.args.args, *function.args.kwonlyargs):
            annotation = ast.unparse(parameter.annotation) if parameter.annotation else ""
            if not _COUNTS.match(parameter.arg) or not re.match(
                r"(int|Annotated\[int|Optional\[int|int \|)", annotation
            ):
                continue
            defaults = ast.unparse(function.args)
            declared = re.search(
                rf"\b{parameter.arg}: [^=]*=\s*(?:\w+\.)?(?:Query|Path|Param)\(([^)]*)\)", defaults
            )
            bounded = re.search(r"\b(le|lt)=", declared[1] if declared else annotation)
            checked = re.search(
                rf"min\([^)]*\b{parameter.arg}\b|\b{parameter.arg} (>|>=|<|<=) \w|(>|>=|<|<=) {parameter.arg}\b",
                body,
            )
            if not bounded and not checked and re.search(rf"\b{parameter.arg}\b", body):
                text = (
                    f"The client chooses {parameter.arg} without an upper bound: add Query(le=…)."
                )
                yield RULES["unbounded-page"].at(module.file, parameter.lineno, text)


def _open_models(module: PythonModule) -> Iterator[Finding]:
    """Pydantic models for requests that keep unknown fields."""
    if "allow" not in module.file.text or not any(
        isinstance(one, ast.Call)
        and isinstance(one.func, ast.Attribute)
        and one.func.attr in _METHODS | {"route"}
        for function in module.functions
        for one in function.decorator_list
    ):
        return
    for node in module.of(ast.ClassDef):
        for statement in node.body:
            if not isinstance(statement, ast.ClassDef | ast.Assign | ast.AnnAssign):
                continue
            text = ast.unparse(statement)
            nested = isinstance(statement, ast.ClassDef) and statement.name == "Config"
            if (nested or text.startswith("model_config")) and re.search(
                r"extra\s*[=:]\s*(['\"]allow['\"]|Extra\.allow)|['\"]extra['\"]: ['\"]allow['\"]",
                text,
            ):
                message = 'Fields that nobody declared are kept: use extra="forbid".'
                yield RULES["mass-assignment"].at(
                    module.file, statement.lineno, message, severity=_MEDIUM, confidence=0.7
                )


_WEB = (
    "flask", "fastapi", "starlette", "django", "aiohttp", "sanic", "bottle", "falcon", "tornado", "quart",
    "rest_framework", "litestar",
)  # fmt: skip
_EXCEPTION_TEXT = re.compile(r"\b(str|repr)\((e|err|error|ex|exc|exception)\)")


def _returned(module: PythonModule, node: ast.Return) -> Iterator[Finding]:
    if isinstance(node.value, ast.Constant | ast.Name) or node.value is None:
        return
    if not any(module.names.imports(name) for name in _WEB):
        return
    written = ast.unparse(node.value)
    if re.search(r"traceback\.format_exc\(|traceback\.format_exception|sys\.exc_info\(\)", written):
        yield RULES["error-details"].at(module.file, node.lineno)
    elif _EXCEPTION_TEXT.search(written) and _is_answer(module, node.value):
        text = "Clients see the text of the exception: log it and send a number."
        yield RULES["error-details"].at(module.file, node.lineno, text, confidence=0.7)


def _is_answer(module: PythonModule, node: ast.expr) -> bool:
    """Whether a returned value is an HTTP answer: a dictionary, a response, or a pair with a status."""
    if isinstance(node, ast.Tuple):
        last = constant(node.elts[-1]) if node.elts else None
        return isinstance(last, int) and 400 <= last < 600
    if isinstance(node, ast.Call):
        return bool(re.search(r"jsonify|[rR]esponse|render", module.names.resolve(node.func)))
    return isinstance(node, ast.Dict)


_SCRIPT = (
    (RULES["mass-assignment"], r"Object\.assign\(\s*[\w.\[\]]+\s*,\s*(req|request|ctx\.request)\.body\b|\.(create|update\w*|findByIdAndUpdate)\([^)]*\breq\.body\s*[,)]|new \w+\(\s*req\.body\s*\)|\{\s*\.\.\.\s*req\.body",
     "The client sets any attribute: name the allowed ones."),
    (RULES["error-details"], r"res(\.status\(\d+\))?\.(send|json|end)\([^)]*\b(err|error|e)\.(stack|message)\b|\.(send|json)\(\s*(err|error)\s*\)",
     "Clients see the internals of the error."),
    (RULES["unbounded-page"], r"\.limit\(\s*(Number\(|parseInt\(|\+)?\s*req\.query",
     "The client chooses how many rows are read."),
    (RULES["introspection"], r"introspection\s*:\s*true", "The schema is shown to everybody."),
)  # fmt: skip


def _script(file: SourceFile) -> Iterator[Finding]:
    for number, line in enumerate(file.lines, 1):
        if len(line) > 2_000 or line.lstrip().startswith(("//", "*")):
            continue
        for rule, pattern, message in _SCRIPT:
            if re.search(pattern, line):
                yield rule.at(file, number, message)
    if "express()" in file.text and re.search(r"express\.json\(\s*\)", file.text):
        if not re.search(r"rateLimit|rate-limit|limiter", file.text, re.I):
            at = file.text.count("\n", 0, file.text.find("express.json(")) + 1
            yield RULES["unbounded-input"].at(
                file,
                at,
                severity=Severity.INFO,
            )


API = Detector(
    "api",
    "Checks OpenAPI documents and request handlers for missing limits and too much trust.",
    _detect,
    RULES,
)
