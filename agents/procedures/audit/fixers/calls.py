"""Fixers of dangerous calls: a safe function in the place of an unsafe one."""

import ast
import re

from agents.procedures.audit.fixers.arguments import added
from agents.procedures.audit.fixers.edits import Fix, Target
from agents.procedures.audit.fixers.text_template import assigned, template_of


def fix_yaml_load(target: Target) -> Fix | None:
    """`yaml.load(x)` or with an unsafe loader becomes `yaml.safe_load(x)` (CWE-502)."""
    for call in target.calls():
        if target.module.call_name(call) not in ("yaml.load", "yaml.unsafe_load", "yaml.full_load"):
            continue
        if not call.args or not isinstance(call.func, ast.Attribute):
            return None
        receiver = target.source(call.func.value)
        text = f"{receiver}.safe_load({target.source(call.args[0])})"
        return target.fix("yaml.safe_load builds no objects.", target.replace(call, text))
    return None


def fix_eval(target: Target) -> Fix | None:
    """`eval(x)` of one argument becomes `ast.literal_eval(x)` (CWE-95); expressions no longer run."""
    for call in target.calls():
        if target.module.call_name(call) == "eval" and len(call.args) == 1 and not call.keywords:
            return target.fix(
                "ast.literal_eval accepts literals only.",
                target.replace(call.func, "ast.literal_eval"),
                imports=["ast"],
            )
    return None


_PROTECTS = re.compile(
    r"(?i)passw|secret|token|sign|auth|(api|private|access|master|encryption)_?key|verif|hmac|salt|session"
    r"|credential|nonce|csrf"
)


def fix_weak_hash(target: Target) -> Fix | None:
    """`hashlib.md5` and `sha1` become `sha256` where they protect something, and say that they do not elsewhere.

    A hash of a cache key or an ETag keeps its value: `usedforsecurity=False` (CWE-327, CWE-328).
    """
    strong = "SHA-256 has no known collisions."
    for call in target.calls():
        name = target.module.call_name(call)
        if name in ("hashlib.md5", "hashlib.sha1"):
            function = target.module.function_of(call)
            statement = target.module.statement_of(call)
            words = target.source(statement) + (function.name if function is not None else "")
            if not _PROTECTS.search(words):
                return target.fix(
                    "The hash protects nothing, and says so.",
                    added(target, call, "usedforsecurity=False"),
                )
            if isinstance(call.func, ast.Attribute):
                new = f"{target.source(call.func.value)}.sha256"
                return target.fix(strong, target.replace(call.func, new))
            return target.fix(
                strong, target.replace(call.func, "hashlib.sha256"), imports=["hashlib"]
            )
        if name == "hashlib.new" and call.args and isinstance(call.args[0], ast.Constant):
            if str(call.args[0].value).lower() in ("md5", "sha1"):
                return target.fix(strong, target.replace(call.args[0], '"sha256"'))
    return None


_RANDOM = {
    "random.choice": "secrets.choice",
    "random.getrandbits": "secrets.randbits",
    "random.randrange": "secrets.SystemRandom().randrange",
    "random.randint": "secrets.SystemRandom().randint",
    "random.choices": "secrets.SystemRandom().choices",
    "random.sample": "secrets.SystemRandom().sample",
    "random.random": "secrets.SystemRandom().random",
}


def fix_random(target: Target) -> Fix | None:
    """Numbers for secrets come from `secrets` (CWE-330, CWE-338)."""
    for call in target.calls():
        new = _RANDOM.get(target.module.call_name(call))
        if new is not None:
            return target.fix(
                "secrets cannot be predicted.", target.replace(call.func, new), imports=["secrets"]
            )
    return None


def fix_mktemp(target: Target) -> Fix | None:
    """`tempfile.mktemp()` becomes a file that exists (CWE-377)."""
    for call in target.calls():
        if target.module.call_name(call) == "tempfile.mktemp":
            inner = ", ".join(
                [
                    f"{k}={target.source(v)}"
                    for k, v in zip(("suffix", "prefix", "dir"), call.args, strict=False)
                ]
                + [
                    target.source(keyword.value)
                    if keyword.arg is None
                    else f"{keyword.arg}={target.source(keyword.value)}"
                    for keyword in call.keywords
                ]
                + ["delete=False"]
            )
            return target.fix(
                "The file is created at once, so nobody else can take its name.",
                target.replace(call, f"tempfile.NamedTemporaryFile({inner}).name"),
                imports=["tempfile"],
            )
    return None


def fix_compare(target: Target) -> Fix | None:
    """`==` of a secret becomes `hmac.compare_digest` (CWE-208)."""
    for node in target.nodes():
        if not isinstance(node, ast.Compare) or len(node.ops) != 1:
            continue
        if not isinstance(node.ops[0], ast.Eq | ast.NotEq):
            continue
        left, right = (
            f"str({target.source(one)}).encode()" for one in (node.left, node.comparators[0])
        )
        sign = "not " if isinstance(node.ops[0], ast.NotEq) else ""
        text = f"{sign}hmac.compare_digest({left}, {right})"
        return target.fix(
            "compare_digest takes the same time for all values.",
            target.replace(node, text),
            imports=["hmac"],
        )
    return None


def fix_sql(target: Target) -> Fix | None:
    """A query built with values becomes one with parameters (CWE-89), where each value is a whole literal."""
    for call in target.calls():
        if not (
            isinstance(call.func, ast.Attribute) and call.func.attr in ("execute", "executemany")
        ):
            continue
        if len(call.args) != 1 or call.keywords:
            continue
        query = call.args[0]
        where = query
        if isinstance(query, ast.Name):
            found = assigned(target, call, query.id)
            if found is None:
                return None
            where = found
        split = _query_parts(target, where)
        if split is None:
            return None
        text, values = split
        mark = (
            "%s"
            if any(
                name in target.file.text
                for name in ("psycopg", "MySQLdb", "pymysql", "mysql.connector")
            )
            else "?"
        )
        literal = (
            '"'
            + text.replace("\0", mark)
            .replace("\\", "\\\\")
            .replace('"', '\\"')
            .replace("\n", "\\n")
            + '"'
        )
        arguments = ", ".join(values) + ("," if len(values) == 1 else "")
        edits = [target.replace(where, literal)]
        start, end = target.span(query)
        if where is query:
            edits = [(start, end, f"{literal}, ({arguments})")]
        else:
            edits.append((end, end, f", ({arguments})"))
        return target.fix("The driver passes the values apart from the query.", *edits)
    return None


def _query_parts(target: Target, query: ast.expr) -> tuple[str, list[str]] | None:
    """The query with NUL for each value, and the values' source; None if a value is no whole literal."""
    found = template_of(target, query)
    return None if found is None else _unquoted(*found)


def _unquoted(text: str, values: list[str]) -> tuple[str, list[str]] | None:
    """Quotes around a value fall away; a value that is part of a name or pattern cannot be a parameter."""
    text = re.sub(r"'\0'|\"\0\"", "\0", text)
    like = re.compile(r"'(%?)\0(%?)'")
    for match in like.finditer(text):
        index = text.count("\0", 0, match.start() + len(match[1]) + 1)
        values[index] = f'f"{match[1]}{{{values[index]}}}{match[2]}"'
    text = like.sub("\0", text)
    for match in re.finditer("\0", text):
        before = text[: match.start()].rstrip()
        word = re.search(r"(\w+|[=<>(,])$", before)
        if word is None or word[1].upper() in (
            "FROM", "INTO", "TABLE", "UPDATE", "JOIN", "BY", "SELECT", "ASC", "DESC", "SET", "COLUMN",
        ):  # fmt: skip
            return None
        after = text[match.end() : match.end() + 1]
        if (after and (after.isalnum() or after in "_%'")) or text[match.start() - 1] in "'%_":
            return None
    return (text, values) if values else None
