"""Network settings that expose: TLS checks off, wide binds, open CORS, plain protocols."""

import ast
import re
from collections.abc import Iterator

from agents.api.finding import Finding, Severity
from agents.detectors.audit.per_file import python_files
from agents.detectors.audit.python_module import PythonModule, is_test_path
from agents.detectors.detector import Detector, DetectorContext
from agents.detectors.python_names import argument, constant, is_false, is_true
from agents.detectors.rule_file import RuleFile
from agents.detectors.security.pattern_rules import PatternRule, matching_calls
from agents.workspace.source_file import SourceFile
from agents.workspace.workspace import Workspace

_HIGH, _MEDIUM, _LOW = Severity.HIGH, Severity.MEDIUM, Severity.LOW
RULES = RuleFile(__file__, "network", entry=PatternRule)

_REQUESTS = re.compile(r"^(requests|httpx)\.(get|post|put|patch|delete|head|options|request|Session|Client|AsyncClient)$"
                       r"|\.(get|post|put|patch|delete|request)$")  # fmt: skip
_WIDE = ("0.0.0.0", "::", "")  # noqa: S104
_BINDS = re.compile(
    r"\.(run|bind|listen|serve|start_server|create_server|make_server)$|Server$|^uvicorn\.run$|^waitress\.serve$"
)
_PLAIN_CALLS = {
    "telnetlib.Telnet": "telnet",
    "ftplib.FTP": "FTP",
    "smtplib.SMTP": "",
    "imaplib.IMAP4": "IMAP without TLS",
    "poplib.POP3": "POP3 without TLS",
    "xmlrpc.client.ServerProxy": "",
}
_OLD_TLS = re.compile(
    r"\b(PROTOCOL_(?:SSLv2|SSLv3|TLSv1|TLSv1_1)|TLSVersion\.(?:SSLv3|TLSv1|TLSv1_1))\b"
)
_PLAIN_URL = re.compile(
    r"""(?<![\w-])http://(?!localhost|127\.|0\.0\.0\.0|\[::1\]|10\.|192\.168\.|172\.(?:1[6-9]|2\d|3[01])\.|
    host\.docker|[\w-]+(?::\d+|/|['"]|$)|example\.|www\.w3\.org|schemas?\.|xmlns|json-schema|www\.apache|purl\.|
    creativecommons|opensource\.org|www\.gnu)[\w.-]+\.[a-z]{2,}""",
    re.VERBOSE,
)
_SENSITIVE_URL = re.compile(
    r"api|login|auth|token|pay|account|user|hook|upload|password|oauth|ingest|collect|submit|event|track|checkout|order|customer|patient|record|report",
    re.I,
)

_PPROF = re.compile(r"^\s*(import\s+)?_\s+\"net/http/pprof\"")
_GO_TLS = re.compile(r"InsecureSkipVerify\s*[:=]\s*true")
_NODE_TLS = re.compile(r"NODE_TLS_REJECT_UNAUTHORIZED['\"\]]*\s*=\s*['\"]?0")
_RUST_TLS = re.compile(r"danger_accept_invalid_(certs|hostnames)\(\s*true\s*\)")
_SHELL_TLS = re.compile(
    r"\bcurl\b[^|;&]*\s(-\w*k\w*|--insecure)\b|\bwget\b[^|;&]*--no-check-certificate|git\b.*http\.sslVerify[= ]false"
    r"|StrictHostKeyChecking[= ]no|\bpip\b.*--trusted-host|npm\b.*strict-ssl[= ]false"
)
_NGINX_TLS = re.compile(r"ssl_protocols\b[^;]*\b(SSLv2|SSLv3|TLSv1|TLSv1\.0|TLSv1\.1)(?=[\s;])")


def _detect(workspace: Workspace, context: DetectorContext) -> Iterator[Finding]:
    for module in python_files(workspace, context, tests=False):
        yield from _python(module)
    for file in workspace.of("go"):
        at = next((n for n, line in enumerate(file.lines, 1) if _PPROF.match(line)), 0)
        if at and not is_test_path(file.path):
            yield RULES["profiler"].at(file, at)
    for file in workspace:
        context.check_cancelled()
        if file.language not in ("python", "markdown", "rst") and not is_test_path(file.path):
            yield from _lines(file)
        if file.language == "yaml":
            yield from _published_ports(file)
    yield from matching_calls(RULES, workspace, context)


def _python(module: PythonModule) -> Iterator[Finding]:
    file = module.file
    for call, name in module.calls:
        requests = _REQUESTS.search(name)
        if is_false(argument(call, None, "verify", "verify_ssl", "ssl_verify")) and requests:
            flag = argument(call, None, "verify", "verify_ssl", "ssl_verify")
            line = call.lineno if flag is None else flag.lineno
            yield RULES["tls-verification"].at(file, line, "verify=False accepts any certificate.")
        if is_false(argument(call, None, "ssl")) and name.endswith(
            ("TCPConnector", ".get", ".post")
        ):
            yield RULES["tls-verification"].at(
                file, call.lineno, "ssl=False accepts any certificate."
            )
        if name in ("ssl._create_unverified_context", "ssl._create_stdlib_context"):
            yield RULES["tls-verification"].at(
                file, call.lineno, "The context does not check certificates."
            )
        if _PLAIN_CALLS.get(name):
            yield RULES["plain-protocol"].at(
                file, call.lineno, f"{_PLAIN_CALLS[name]} is readable on the way."
            )
        if name.endswith("set_missing_host_key_policy"):
            policy = ast.unparse(call.args[0]) if call.args else ""
            if "AutoAddPolicy" in policy or "WarningPolicy" in policy:
                yield RULES["host-key"].at(file, call.lineno)
        if _BINDS.search(name):
            yield from _bind(file, call)
        if name.endswith(("CORSMiddleware", "add_middleware", "CORS")):
            yield from _cors(file, call, name)
        if name in {
            f"requests.{verb}" for verb in ("get", "post", "put", "patch", "delete", "head")
        }:
            if argument(call, None, "timeout") is None and not any(
                k.arg is None for k in call.keywords
            ):
                yield RULES["no-timeout"].at(file, call.lineno)
    for attribute in module.of(ast.Attribute):
        if attribute.attr.startswith(("PROTOCOL_", "SSLv", "TLSv")):
            if isinstance(module.parent.get(attribute), ast.Dict | ast.Compare | ast.Subscript):
                continue  # an entry of a table, not a choice
            if found := _OLD_TLS.search(ast.unparse(attribute)):
                text = f"{found[1]} is broken: use TLS 1.2 or newer."
                yield RULES["weak-tls"].at(file, attribute.lineno, text)
    for assignment in module.of(ast.Assign):
        yield from _assignment(module, assignment)
    for node in module.of(ast.Constant) if "http://" in file.text else ():
        if isinstance(node.value, str) and "http://" in node.value:
            match = _PLAIN_URL.search(node.value)
            if match and _SENSITIVE_URL.search(node.value) and "\n" not in node.value:
                yield RULES["plain-protocol"].at(
                    file, node.lineno, f"{match.group()[:80]} is sent without TLS.", severity=_LOW
                )


def _assignment(module: PythonModule, node: ast.Assign) -> Iterator[Finding]:
    if not isinstance(node.value, ast.Constant | ast.Attribute | ast.Name):
        return
    target = ast.unparse(node.targets[0])
    value = ast.unparse(node.value)
    severity = _LOW if _is_asked_for(module, node) else None
    if target.endswith(".verify_mode") and value.endswith("CERT_NONE"):
        text = "The context accepts any certificate."
        yield RULES["tls-verification"].at(module.file, node.lineno, text, severity=severity)
    elif target.endswith((".check_hostname", ".verify")) and is_false(node.value):
        yield RULES["tls-verification"].at(
            module.file, node.lineno, f"{target} is off.", severity=severity
        )
    elif target.endswith("_create_default_https_context") and "unverified" in value:
        yield RULES["tls-verification"].at(
            module.file, node.lineno, "All HTTPS requests go unchecked."
        )
    elif ("Access-Control-Allow-Origin" in target and constant(node.value) == "*") or (
        target in ("CORS_ALLOW_ALL_ORIGINS", "CORS_ORIGIN_ALLOW_ALL") and is_true(node.value)
    ):
        text = "Every site may read the answers."
        yield RULES["cors"].at(module.file, node.lineno, text, severity=severity)
    elif re.fullmatch(r"(\w+\.)*(HOST|host|BIND|bind|BIND_ADDRESS|LISTEN)", target):
        if constant(node.value) == _WIDE[0]:
            yield RULES["wide-bind"].at(module.file, node.lineno)


_OPTION = re.compile(r"(?i)verify|insecure|ssl|tls|cert|allow|check|origin")


def _is_asked_for(module: PythonModule, node: ast.AST) -> bool:
    """Whether the code runs only if an option says so: a library's switch, off unless its user turns it."""
    function = module.function_of(node)
    name = "" if function is None else function.name
    if function is not None and re.search(r"(?i)insecure|unverified|no_?verify", name):
        return True
    parent = module.parent.get(node)
    while parent is not None and parent is not function:
        if isinstance(parent, ast.If) and _OPTION.search(ast.unparse(parent.test)):
            return True
        parent = module.parent.get(parent)
    return False


def _bind(file: SourceFile, call: ast.Call) -> Iterator[Finding]:
    candidates = [argument(call, None, "host", "address", "bind"), *call.args[:3]]
    for one in candidates:
        if isinstance(one, ast.Tuple) and len(one.elts) == 2:
            one = one.elts[0]
            empty = constant(one) == ""
        else:
            empty = False
        if constant(one) in _WIDE[:2] or empty:
            yield RULES["wide-bind"].at(file, call.lineno)
            return


def _cors(file: SourceFile, call: ast.Call, name: str) -> Iterator[Finding]:
    text = ast.unparse(call)
    wide = re.search(
        r"(allow_origins|origins|allow_origin_regex)=(\[?['\"](\*|\.\*)['\"]\]?)", text
    )
    resources = name.endswith("CORS") and re.search(r"['\"]origins['\"]: ['\"]\*['\"]", text)
    credentials = re.search(r"(allow_credentials|supports_credentials)=True", text)
    bare = name.endswith("flask_cors.CORS") and not re.search(r"origins|resources", text)
    if wide or resources or (bare and credentials):
        more = " with their credentials" if credentials else ""
        severity = _HIGH if credentials else _MEDIUM
        yield RULES["cors"].at(
            file, call.lineno, f"Every site may read answers{more}.", severity=severity
        )


def _lines(file: SourceFile) -> Iterator[Finding]:
    config = file.language in (
        None,
        "yaml",
        "toml",
        "ini",
        "dotenv",
        "properties",
        "systemd",
        "json",
    )
    for number, line in enumerate(file.lines, 1):
        if len(line) > 2_000 or line.lstrip().startswith(("#", "//", "*", "<!--")):
            continue
        if _GO_TLS.search(line) or _NODE_TLS.search(line) or _RUST_TLS.search(line):
            yield RULES["tls-verification"].at(file, number, "Certificates are not checked.")
        elif file.language in ("bash", "dockerfile", "yaml", "make") and _SHELL_TLS.search(line):
            rule = (
                RULES["host-key"] if "StrictHostKeyChecking" in line else RULES["tls-verification"]
            )
            yield rule.at(file, number, "The other side is not checked.")
        elif match := _NGINX_TLS.search(line):
            yield RULES["weak-tls"].at(
                file, number, f"{match[1]} is allowed: use TLSv1.2 and newer."
            )
        elif re.search(r"\bautoindex\s+on\b|Options\s+(\+)?.*\bIndexes\b", line) and config:
            yield RULES["directory-listing"].at(file, number)
        elif re.search(r"Access-Control-Allow-Origin['\"]?[\s,:=]+['\"]?\*", line):
            if file.language not in ("javascript", "typescript", "tsx"):
                yield RULES["cors"].at(file, number)
        elif config and re.search(
            r"^\s*['\"]?(host|bind|listen|address|bind_address)['\"]?\s*[:=]\s*['\"]?0\.0\.0\.0",
            line,
            re.I,
        ):
            yield RULES["wide-bind"].at(file, number, "The service listens on every interface.")


_PORT = re.compile(r"^\s*-\s*['\"]?(?:0\.0\.0\.0:)?(\d{2,5}):(\d{2,5})(?:/\w+)?['\"]?\s*(?:#.*)?$")
_INTERNAL = frozenset([
    "5432", "3306", "6379", "27017", "9200", "11211", "5672", "15672", "2375", "1433", "8500", "9090", "2379",
])  # fmt: skip


def _published_ports(file: SourceFile) -> Iterator[Finding]:
    if "services:" not in file.text:
        return
    for number, line in enumerate(file.lines, 1):
        match = _PORT.match(line)
        if match and match[2] in _INTERNAL:
            text = f"Port {match[2]} is published on every interface: bind it to 127.0.0.1."
            yield RULES["wide-bind"].at(file, number, text)
        elif re.search(r"^\s*network_mode:\s*['\"]?host", line):
            yield RULES["wide-bind"].at(
                file, number, "The container shares the network of the host."
            )


NETWORK = Detector(
    "network",
    "Looks for TLS checks that are off, wide binds, open CORS and plain protocols.",
    _detect,
    RULES,
)
