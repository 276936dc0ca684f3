"""Tests that look at the source: they show that a pattern is gone, not that the program works."""

import ast
from collections.abc import Callable, Mapping, Sequence

from agents.api.finding import Finding
from agents.detectors.audit.python_module import PythonModule
from agents.procedures.audit.reproducers.calls import function_at
from agents.procedures.audit.reproducers.reproducer import Reproducer


def _names(*names: str) -> str:
    """References of imported things, not only calls: an alias is one, too."""
    return f"isinstance(node, ast.Name | ast.Attribute) and dotted(node) in {sorted(names)!r}"


def _keyword(name: str, value: str) -> str:
    return (
        "isinstance(node, ast.keyword) and "
        f"node.arg == {name!r} and ast.unparse(node.value) == {value!r}"
    )


def _setting(name: str, value: str) -> str:
    """A keyword, a member of a dictionary or an assignment."""
    return (
        f"({_keyword(name, value)}) or (isinstance(node, ast.Dict) and any(isinstance(k, ast.Constant) and "
        f"k.value == {name!r} and ast.unparse(v) == {value!r} for k, v in zip(node.keys, node.values, strict=True)))"
        f" or (isinstance(node, ast.Assign) and ast.unparse(node.value) == {value!r} and "
        f"any(ast.unparse(t).endswith({name!r}) or {name!r} in ast.unparse(t) for t in node.targets))"
    )


_HASHES = ("hashlib.md5", "hashlib.sha1")
_HASH = (
    f"isinstance(node, ast.Call) and dotted(node.func) in {sorted(_HASHES)!r} and "
    "not any(k.arg == 'usedforsecurity' and ast.unparse(k.value) == 'False' for k in node.keywords)"
)
_BY_CWE: Mapping[int, str] = {
    20: _names("yaml.load", "yaml.unsafe_load", "yaml.full_load", "xml.etree.ElementTree.fromstring",
               "xml.etree.ElementTree.parse", "xml.dom.minidom.parseString", "xml.dom.minidom.parse"),
    22: "isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == 'extractall' "
        "and not any(k.arg == 'filter' for k in node.keywords)",
    78: f"({_keyword('shell', 'True')}) or ({_names('os.system', 'os.popen')})",
    89: "isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and "
        "node.func.attr in ('execute', 'executemany') and bool(node.args) and "
        "len(node.args) == 1 and not isinstance(node.args[0], ast.Constant)",
    94: f"({_names('eval', 'exec')}) or ({_setting('debug', 'True')})",
    95: _names("eval", "exec"),
    208: "isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Eq | ast.NotEq)",
    215: _setting("debug", "True"),
    259: "isinstance(node, ast.Assign | ast.keyword) and isinstance(node.value, ast.Constant) and "
         "isinstance(node.value.value, str)",
    295: f"({_setting('verify', 'False')}) or ({_setting('check_hostname', 'False')}) or "
         f"({_names('ssl._create_unverified_context', 'ssl.CERT_NONE')})",
    322: _names("paramiko.AutoAddPolicy", "paramiko.WarningPolicy"),
    327: _HASH,
    328: _HASH,
    330: "isinstance(node, ast.Attribute) and dotted(node).startswith('random.')",
    338: "isinstance(node, ast.Attribute) and dotted(node).startswith('random.')",
    347: f"({_setting('verify_signature', 'False')}) or (isinstance(node, ast.Constant) and "
         "str(node.value).lower() == 'none' and node.value is not None)",
    377: _names("tempfile.mktemp"),
    396: "isinstance(node, ast.ExceptHandler) and node.type is None",
    400: "isinstance(node, ast.Call) and dotted(node.func).split('.')[0] in ('requests', 'httpx', 'urllib') and "
         "not any(k.arg == 'timeout' for k in node.keywords)",
    489: _setting("debug", "True"),
    502: _names("yaml.load", "yaml.unsafe_load", "yaml.full_load", "pickle.loads", "pickle.load"),
    605: "isinstance(node, ast.Constant) and node.value in ('0.0.0.0', '::')",
    614: _setting("secure", "False"),
    668: "isinstance(node, ast.Constant) and node.value in ('0.0.0.0', '::')",
    732: "isinstance(node, ast.Call) and dotted(node.func).endswith('chmod') and any(isinstance(a, ast.Constant) "
         "and isinstance(a.value, int) and a.value & 0o022 for a in node.args)",
    798: "isinstance(node, ast.Assign | ast.keyword) and isinstance(node.value, ast.Constant) and "
         "isinstance(node.value.value, str)",
    1004: _setting("httponly", "False"),
}  # fmt: skip
_BY_RULE: Mapping[str, str] = {
    "E711": "isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Eq | ast.NotEq) and "
            "ast.unparse(node.comparators[0]) == 'None'",
    "E712": "isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Eq | ast.NotEq) and "
            "ast.unparse(node.comparators[0]) in ('True', 'False')",
    "E713": "isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not) and isinstance(node.operand, ast.Compare) "
            "and isinstance(node.operand.ops[0], ast.In)",
    "E714": "isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not) and isinstance(node.operand, ast.Compare) "
            "and isinstance(node.operand.ops[0], ast.Is)",
    "E722": "isinstance(node, ast.ExceptHandler) and node.type is None",
    "F632": "isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Is | ast.IsNot) and "
            "isinstance(node.comparators[0], ast.Constant) and node.comparators[0].value not in (None, True, False)",
    "is-literal": "isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Is | ast.IsNot) and "
                  "isinstance(node.comparators[0], ast.Constant) and "
                  "node.comparators[0].value not in (None, True, False)",
    "mutable-default": "isinstance(node, ast.arguments) and any(isinstance(d, ast.List | ast.Dict | ast.Set) "
                       "for d in [*node.defaults, *node.kw_defaults])",
    "open-without-encoding": "isinstance(node, ast.Call) and ast.unparse(node.func) == 'open' and "
                             "not any(k.arg == 'encoding' for k in node.keywords) and len(node.args) < 2",
    "self-comparison": "isinstance(node, ast.Compare) and "
                       "ast.unparse(node.left) == ast.unparse(node.comparators[0])",
    "changed-while-iterated": "isinstance(node, ast.For) and any(isinstance(i, ast.Call) and "
                              "isinstance(i.func, ast.Attribute) and i.func.attr in ('remove', 'append', 'pop') "
                              "and ast.unparse(i.func.value) == ast.unparse(node.iter) for i in ast.walk(node))",
    "constant-operand": "isinstance(node, ast.BoolOp) and any(isinstance(v, ast.Constant) and v.value for v in node.values)",
    "duplicate-condition": "isinstance(node, ast.If) and any(isinstance(i, ast.If) and "
                           "ast.unparse(i.test) == ast.unparse(node.test) for i in node.orelse)",
    "wrong-boolean-operator": "isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or) and all("
                              "isinstance(v, ast.Compare) and isinstance(v.ops[0], ast.NotEq) for v in node.values)",
    "weak-tls": _names("ssl.PROTOCOL_TLSv1", "ssl.PROTOCOL_TLSv1_1", "ssl.PROTOCOL_SSLv23", "ssl.PROTOCOL_SSLv3"),
    "assert-tuple": "isinstance(node, ast.Assert) and isinstance(node.test, ast.Tuple)",
}  # fmt: skip
_ALIASES = {"B006": "mutable-default"}

NAMES = """\
names = {}
for node in ast.walk(tree):
    if isinstance(node, ast.Import):
        names |= {one.asname or one.name.split(".")[0]: one.name if one.asname else one.name.split(".")[0] for one in node.names}
    elif isinstance(node, ast.ImportFrom):
        names |= {one.asname or one.name: f"{node.module}.{one.name}" for one in node.names}


def dotted(node):
    head, dot, rest = ast.unparse(node).partition(".")
    return names.get(head, head) + dot + rest


"""


def source_check(module: PythonModule, finding: Finding) -> Reproducer | None:
    """A check that the finding's pattern occurs less often in its function, or None if there is no such pattern."""
    rule = _ALIASES.get(finding.rule, finding.rule)
    bad = _BY_RULE.get(rule) or _BY_CWE.get(finding.cwe or 0)
    if bad is None:
        return None
    function = function_at(module, finding.line)
    scopes = [module.tree] if function is None else [
        one for one in module.functions if one.name == function.name
    ]  # fmt: skip
    count = _count(module, scopes, bad)
    if not count:
        return None
    where = "[tree]" if function is None else (
        "[one for one in ast.walk(tree) if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef) "
        f"and one.name == {function.name!r}] or [tree]"
    )  # fmt: skip
    body = (
        f"{NAMES}scopes = {where}\n"
        f"bad = {{\n    node\n    for scope in scopes\n    for node in ast.walk(scope)\n    if {bad}\n}}\n"
        "found = sorted(getattr(node, 'lineno', 0) for node in bad)\n"
        f'assert len(bad) < {count}, f"{finding.rule} on lines {{found}}"\n'
    )
    return Reproducer(
        "source check",
        body,
        f"The source has no {finding.rule}; the program's behaviour is not tested.",
    )


def _count(module: PythonModule, scopes: Sequence[ast.AST], bad: str) -> int:
    # The expressions are the constants above; nothing of the file takes part but its tree.
    check = compile(bad, "<source check>", "eval")
    dotted: Callable[[ast.AST], str] = lambda node: module.qualified(node) or ast.unparse(node)  # noqa: E731
    found = {
        node
        for scope in scopes
        for node in ast.walk(scope)
        if eval(check, {"ast": ast, "node": node, "dotted": dotted})  # noqa: S307 - see above
    }
    return len(found)
