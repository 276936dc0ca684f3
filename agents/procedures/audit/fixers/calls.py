"""Fixers of dangerous calls: a safe function in the place of an unsafe one."""

import ast

from agents.detectors.audit.python_module import shape
from agents.procedures.audit.fixers.edits import Fix, Target


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


def fix_weak_hash(target: Target) -> Fix | None:
    """`hashlib.md5` and `sha1` become `sha256` (CWE-327, CWE-328)."""
    for call in target.calls():
        name = target.module.call_name(call)
        if name in ("hashlib.md5", "hashlib.sha1"):
            if isinstance(call.func, ast.Attribute):
                new = f"{target.source(call.func.value)}.sha256"
                return target.fix(
                    "SHA-256 has no known collisions.", target.replace(call.func, new)
                )
            return target.fix(
                "SHA-256 has no known collisions.",
                target.replace(call.func, "hashlib.sha256"),
                imports=["hashlib"],
            )
        if name == "hashlib.new" and call.args and isinstance(call.args[0], ast.Constant):
            if str(call.args[0].value).lower() in ("md5", "sha1"):
                return target.fix(
                    "SHA-256 has no known collisions.", target.replace(call.args[0], '"sha256"')
                )
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


def fix_shell(target: Target) -> Fix | None:
    """`shell=True` with a list, or with a constant of plain words, becomes a call without a shell (CWE-78)."""
    for call in target.calls():
        if not target.module.call_name(call).startswith("subprocess."):
            continue
        shell = next((k for k in call.keywords if k.arg == "shell"), None)
        if (
            shell is None
            or not isinstance(shell.value, ast.Constant)
            or not shell.value.value
            or not call.args
        ):
            continue
        command = call.args[0]
        edits = [target.replace(shell.value, "False")]
        words = _words(target, command)
        if words is None:
            return None
        if words:
            edits.append(target.replace(command, f"[{', '.join(words)}]"))
        return target.fix("Without a shell, arguments cannot become commands.", *edits)
    return None


def _words(target: Target, command: ast.expr) -> list[str] | None:
    """The words of a command as source; empty if it is a list already; None if a shell is needed."""
    if isinstance(command, ast.List | ast.Tuple):
        return []
    parts: list[str | ast.expr]
    if isinstance(command, ast.Constant) and isinstance(command.value, str):
        parts = [command.value]
    elif isinstance(command, ast.JoinedStr):
        parts = []
        for value in command.values:
            if isinstance(value, ast.Constant):
                parts.append(str(value.value))
            elif (
                isinstance(value, ast.FormattedValue)
                and value.conversion == -1
                and not value.format_spec
            ):
                parts.append(value.value)
            else:
                return None
    elif isinstance(command, ast.BinOp) and isinstance(command.op, ast.Add):
        if not (isinstance(command.left, ast.Constant) and isinstance(command.left.value, str)):
            return None
        parts = [command.left.value, command.right]
    else:
        return None
    words: list[str] = []
    for index, part in enumerate(parts):
        if isinstance(part, str):
            if any(mark in part for mark in "|&;<>$`*?\"'\\\n(){}~#"):
                return None
            before_value = index + 1 < len(parts)
            after_value = index > 0
            if (before_value and part and not part.endswith(" ")) or (
                after_value and part and not part.startswith(" ")
            ):
                return None  # a word that is part text, part value
            words += [repr(word).replace("'", '"') for word in part.split()]
        else:
            words.append(
                f"str({target.source(part)})" if not _is_text(part) else target.source(part)
            )
    return words


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Name | ast.Attribute | ast.Subscript | ast.Constant)


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
            found = _assigned(target, call, query.id)
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


def _assigned(target: Target, call: ast.Call, name: str) -> ast.expr | None:
    from agents.detectors.audit.edge_cases.guards import definition

    return definition(target.module, call, name)


def _query_parts(target: Target, query: ast.expr) -> tuple[str, list[str]] | None:
    """The query with NUL for each value, and the values' source; None if a value is no whole literal."""
    pieces: list[str] = []
    values: list[str] = []

    def add(node: ast.expr) -> None:
        pieces.append("\0")
        values.append(target.source(node))

    if isinstance(query, ast.JoinedStr):
        for value in query.values:
            if isinstance(value, ast.Constant):
                pieces.append(str(value.value))
            elif isinstance(value, ast.FormattedValue) and value.format_spec is None:
                # In Python 3.11 the parts of an f-string have no exact places.
                pieces.append("\0")
                values.append(shape(value.value))
            else:
                return None
    elif isinstance(query, ast.BinOp) and isinstance(query.op, ast.Mod):
        if not (isinstance(query.left, ast.Constant) and isinstance(query.left.value, str)):
            return None
        given = query.right.elts if isinstance(query.right, ast.Tuple) else [query.right]
        parts = query.left.value.split("%s")
        if len(parts) != len(given) + 1 or "%" in "".join(parts):
            return None
        for part, one in zip(parts, given, strict=False):
            pieces.append(part)
            add(one)
        pieces.append(parts[-1])
    elif isinstance(query, ast.Call) and isinstance(query.func, ast.Attribute):
        text = query.func.value
        if query.func.attr != "format" or not isinstance(text, ast.Constant) or query.keywords:
            return None
        parts = str(text.value).split("{}")
        if len(parts) != len(query.args) + 1 or "{" in "".join(parts):
            return None
        for part, one in zip(parts, query.args, strict=False):
            pieces.append(part)
            add(one)
        pieces.append(parts[-1])
    elif isinstance(query, ast.BinOp) and isinstance(query.op, ast.Add):
        operands: list[ast.expr] = []
        node: ast.expr = query
        while isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            operands.append(node.right)
            node = node.left
        for operand in [node, *reversed(operands)]:
            if isinstance(operand, ast.Constant) and isinstance(operand.value, str):
                pieces.append(operand.value)
            elif (
                isinstance(operand, ast.Call)
                and shape(operand.func) == "str"
                and len(operand.args) == 1
            ):
                add(operand.args[0])
            else:
                add(operand)
    else:
        return None
    return _unquoted("".join(pieces), values)


def _unquoted(text: str, values: list[str]) -> tuple[str, list[str]] | None:
    """Quotes around a value fall away; a value that is part of a name or pattern cannot be a parameter."""
    import re

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
