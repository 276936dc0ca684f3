"""Edits of source code that need no model: rename, replace, format, sort imports, annotate.

Each takes the texts by path and gives the changed ones; it refuses what it cannot do safely.
"""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from agents.api.errors import InvalidTask
from agents.workspace.source_file import SourceFile
from agents.workspace.workspace import Workspace

_RUFF_TIMEOUT_S = 60
_IDENTIFIER = re.compile(r"[^\W\d]\w*")
_IDENTIFIER_NODES = frozenset(
    ["identifier", "property_identifier", "field_identifier", "type_identifier", "package_identifier",
     "shorthand_property_identifier", "shorthand_property_identifier_pattern", "shorthand_field_identifier"]
)  # fmt: skip
RUFF_RULES = {
    "format": "",
    "imports": "I",
    "unused imports": "F401",
    "lint": "F,I,UP,C4,SIM,PIE,RET,E7,W",
}


@dataclass(frozen=True, slots=True)
class Edited:
    """Changed texts by path, and what was done in one sentence."""

    texts: dict[str, str]
    reason: str


def rename_symbol(workspace: Workspace, old: str, new: str) -> Edited:
    """Rename an identifier in all files; strings and comments stay.

    Raises:
        InvalidTask: a name is no identifier, `old` does not occur, or `new` is taken.
    """
    if not _IDENTIFIER.fullmatch(new) or not _IDENTIFIER.fullmatch(old):
        raise InvalidTask(f"{new!r:.60} or {old!r:.60} is no identifier.")
    texts: dict[str, str] = {}
    count = 0
    for file in workspace:
        if file.tree is None:
            continue
        places = list(_identifiers(file, {old, new}))
        mine = [start for start, name in places if name == old]
        if mine and len(mine) < len(places):
            raise InvalidTask(
                f"{new} is already used in {file.path}: the rename would join two names."
            )
        if mine:
            data = file.text.encode("utf-8", "replace")
            for start in reversed(mine):
                data = data[:start] + new.encode() + data[start + len(old.encode()) :]
            texts[file.path] = data.decode("utf-8", "replace")
            count += len(mine)
    if not texts:
        raise InvalidTask(f"No file has the identifier {old}.")
    return Edited(texts, f"Rename {old} to {new}: {count} places in {len(texts)} files.")


def _identifiers(file: SourceFile, names: set[str]) -> Iterator[tuple[int, str]]:
    """Byte offsets of identifiers with these names, in order."""
    if file.tree is None:
        return
    wanted = {name.encode(): name for name in names}
    cursor = file.tree.walk()
    while True:
        node = cursor.node
        if node is not None and node.child_count == 0 and node.type in _IDENTIFIER_NODES:
            name = wanted.get(node.text or b"")
            if name is not None:
                yield node.start_byte, name
        if cursor.goto_first_child() or cursor.goto_next_sibling():
            continue
        while cursor.goto_parent():
            if cursor.goto_next_sibling():
                break
        else:
            return


def replace_text(workspace: Workspace, old: str, new: str, path: str = "") -> Edited:
    """Replace a text in one file, or in all that have it.

    Raises:
        InvalidTask: no file has it, or the file does not exist.
    """
    files = list(workspace) if not path else [file for file in workspace if file.path == path]
    texts = {file.path: file.text.replace(old, new) for file in files if old in file.text}
    if not texts:
        raise InvalidTask(f"{path or 'The workspace'} does not have the text {old!r:.80}.")
    count = sum(file.text.count(old) for file in files)
    return Edited(
        texts, f"Replace {old!r:.60} by {new!r:.60}: {count} places in {len(texts)} files."
    )


def ruff_fix(files: list[SourceFile], kind: str) -> Edited:
    """Format Python files, or apply ruff's safe fixes of some rules; the project's configuration is not read.

    Args:
        files: Python files.
        kind: a key of `RUFF_RULES`.

    Raises:
        InvalidTask: ruff cannot be run, or changes nothing.
    """
    rules = RUFF_RULES[kind]
    command = [sys.executable, "-m", "ruff"]
    command += ["check", "--fix-only", "--select", rules] if rules else ["format"]
    texts = {}
    for file in files:
        after = _run_ruff(
            [*command, "--isolated", "--no-cache", "--quiet", "--stdin-filename", "input.py", "-"],
            file.text,
        )
        if after and after != file.text:
            texts[file.path] = after
    if not texts:
        raise InvalidTask("There is nothing to change: ruff finds the files in order.")
    return Edited(texts, f"Apply ruff ({kind}) to {len(texts)} files.")


def _run_ruff(command: list[str], text: str) -> str:
    try:
        done = subprocess.run(
            command,
            input=text.encode("utf-8", "replace"),
            capture_output=True,
            timeout=_RUFF_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InvalidTask(f"ruff cannot be run ({type(error).__name__}).") from error
    # 1 says that problems are left, which is no failure; 2 is a syntax error in the file.
    return done.stdout.decode("utf-8", "replace") if done.returncode in (0, 1) else ""


def annotate_returns(files: list[SourceFile]) -> Edited:
    """Add `-> None` to functions that return nothing, and types of parameters with literal defaults.

    Raises:
        InvalidTask: nothing can be inferred.
    """
    texts = {}
    count = 0
    for file in files:
        inserts = list(_annotations(file))
        if inserts:
            texts[file.path] = _inserted(file.text, inserts)
            count += len(inserts)
    if not texts:
        raise InvalidTask("No type can be inferred without a model: nothing was annotated.")
    return Edited(texts, f"Add {count} annotations that follow from the code.")


def _annotations(file: SourceFile) -> Iterator[tuple[int, int, str]]:
    """(line, byte column, text) of annotations that are certain."""
    if file.python is None:
        return
    for node in ast.walk(file.python):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        arguments = [*node.args.posonlyargs, *node.args.args]
        defaults = node.args.defaults
        pairs = list(zip(arguments[len(arguments) - len(defaults) :], defaults, strict=True))
        pairs += [
            (a, d) for a, d in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True) if d
        ]
        for argument, default in pairs:
            value = default.value if isinstance(default, ast.Constant) else None
            known = isinstance(value, bool | int | str | float) and argument.annotation is None
            if known and argument.end_lineno and argument.end_col_offset is not None:
                yield argument.end_lineno, argument.end_col_offset, f": {type(value).__name__}"
        if node.returns is None and _returns_nothing(node):
            place = _before_colon(file, node)
            if place is not None:
                yield (*place, " -> None")


def _returns_nothing(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a function has a body without `return value` and `yield`, and is no stub or property."""
    if node.decorator_list:
        return False
    stack: list[ast.AST] = list(node.body)
    only_raises = all(isinstance(one, ast.Raise | ast.Expr | ast.Pass) for one in node.body)
    while stack:
        one = stack.pop()
        if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            continue
        if isinstance(one, ast.Yield | ast.YieldFrom):
            return False
        if isinstance(one, ast.Return) and one.value is not None:
            return False
        stack.extend(ast.iter_child_nodes(one))
    return not (only_raises and not any(_calls(one) for one in node.body))


def _calls(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call | ast.Await)


def _before_colon(
    file: SourceFile, node: ast.FunctionDef | ast.AsyncFunctionDef
) -> tuple[int, int] | None:
    """The byte position of the colon that ends the signature, if it closes with `):`."""
    first = node.body[0].lineno
    for number in range(node.lineno, first + 1):
        line = file.lines[number - 1]
        match = re.search(r"\)\s*:\s*(?:#.*)?$", line)
        if match:
            return number, len(line[: match.start() + 1].encode())
    return None


def _inserted(text: str, inserts: list[tuple[int, int, str]]) -> str:
    """The text with pieces inserted at (line from 1, byte column)."""
    lines = text.split("\n")
    for number, column, piece in sorted(inserts, reverse=True):
        data = lines[number - 1].encode("utf-8", "surrogatepass")
        lines[number - 1] = (data[:column] + piece.encode() + data[column:]).decode(
            "utf-8", "replace"
        )
    return "\n".join(lines)
