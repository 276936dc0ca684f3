"""The rules of source-to-sink analysis, one for each kind of sink."""

from collections.abc import Mapping

from agents.api.finding import Severity
from agents.detectors.detector import Rule
from agents.detectors.security.taint.value import SinkKind

_HIGH, _MEDIUM, _LOW = Severity.HIGH, Severity.MEDIUM, Severity.LOW
_CRITICAL = Severity.CRITICAL

RULES: Mapping[SinkKind, Rule] = {
    SinkKind.SQL: Rule("sql-injection", _CRITICAL, "SQL built from data", 89),
    SinkKind.COMMAND: Rule("command-injection", _CRITICAL, "shell command built from data", 78),
    SinkKind.CODE: Rule("code-injection", _CRITICAL, "data executed as code", 95),
    SinkKind.DESERIALIZE: Rule(
        "unsafe-deserialization", _CRITICAL, "objects unpickled from data", 502
    ),
    SinkKind.TEMPLATE: Rule("template-injection", _CRITICAL, "template made of data", 1336),
    SinkKind.HTML: Rule("cross-site-scripting", _HIGH, "HTML built from data without escaping", 79),
    SinkKind.XML: Rule("xxe", _HIGH, "XML parsed with external entities", 611),
    SinkKind.PATH: Rule("path-traversal", _HIGH, "file path made of data", 22),
    SinkKind.URL: Rule("ssrf", _HIGH, "request to an address made of data", 918),
    SinkKind.REDIRECT: Rule("open-redirect", _MEDIUM, "redirect to an address made of data", 601),
    SinkKind.LDAP: Rule("ldap-injection", _HIGH, "LDAP filter built from data", 90),
    SinkKind.XPATH: Rule("xpath-injection", _HIGH, "XPath expression built from data", 643),
    SinkKind.LOG: Rule("log-injection", _LOW, "data of a client in a log message", 117),
    SinkKind.REGEX: Rule("regex-injection", _LOW, "regular expression made of data", 1333),
    SinkKind.NOSQL: Rule("nosql-injection", _HIGH, "query document made of data", 943),
    SinkKind.REFLECTION: Rule(
        "unsafe-reflection", _HIGH, "module or attribute chosen by data", 470
    ),
}

ADVICE: Mapping[SinkKind, str] = {
    SinkKind.SQL: "Pass the values as query parameters.",
    SinkKind.COMMAND: "Pass an argument list without a shell, or quote with shlex.quote.",
    SinkKind.CODE: "Parse the data (ast.literal_eval, json) or look it up in a table instead.",
    SinkKind.DESERIALIZE: "Use JSON or another format that cannot create objects.",
    SinkKind.TEMPLATE: "Keep the template constant and pass the data as variables.",
    SinkKind.HTML: "Escape the data or let a template with auto-escaping render it.",
    SinkKind.XML: "Parse with defusedxml or switch entity resolution off.",
    SinkKind.PATH: "Resolve the path and check that it stays beneath the intended folder.",
    SinkKind.URL: "Check scheme and resolved address against an allow-list.",
    SinkKind.REDIRECT: "Redirect to relative paths or listed hosts only.",
    SinkKind.LDAP: "Escape the data with escape_filter_chars.",
    SinkKind.XPATH: "Pass the data as XPath variables.",
    SinkKind.LOG: "Remove line breaks, or log structured fields.",
    SinkKind.REGEX: "Escape the data with re.escape.",
    SinkKind.NOSQL: "Take single fields, check that they are strings, and avoid $where.",
    SinkKind.REFLECTION: "Look the name up in a table of permitted ones.",
}
