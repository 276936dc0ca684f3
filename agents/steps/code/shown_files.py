"""`shown_files`: the files that a change is about, as the model is shown them.

A file is chosen by what the task names: its path, or something that it defines; else by the words that it
shares with the task. A file that is too long for the room is shown as an outline with the definitions that
the task names.
"""

import ast
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from agents.text.relevance import PassageIndex
from agents.width.signature import Definition, Function
from agents.workspace.source_file import SourceFile
from agents.workspace.workspace import Workspace

MAX_FILES = 3
_NAME = re.compile(r"[^\W\d]\w{2,}(?:\.[^\W\d]\w+)*")
_MARKED = re.compile(r"`(?:\w+\.)*(\w+)(?:\(\))?`|\b(\w+)\(")
"""A name that is quoted or called, and so is no word."""
_TEST = re.compile(r"(?:^|/)(?:tests?/|test_[^/]*\.py$|[^/]*_test\.py$|conftest\.py$)")
_WORDS = frozenset([
    "the", "and", "for", "not", "with", "from", "that", "this", "function", "class", "method", "file", "add",
    "return", "returns", "value", "when", "all", "none", "true", "false", "list", "dict", "set", "str", "int",
    "float", "bool", "test", "tests", "code", "change", "make", "write", "new", "one", "two", "get", "use",
    "using", "it", "be", "should", "must", "error", "errors", "name", "names",
])  # fmt: skip
"""Words that are names as well: they count only where they are quoted, called or behind a class."""


@dataclass(frozen=True, slots=True)
class ShownFile:
    """A file in the prompt.

    Attributes:
        path: relative to the workspace.
        text: what is shown.
        is_whole: whether that is all of it.
    """

    path: str
    text: str
    is_whole: bool = True


def is_test_path(path: str) -> bool:
    """Whether a path is that of a test."""
    return _TEST.search(path) is not None


def named_files(task: str, workspace: Workspace) -> list[SourceFile]:
    """The files whose path the task names, in its order."""
    found: dict[int, SourceFile] = {}
    for file in workspace:
        name = file.path.rpartition("/")[2]
        for wanted in (file.path, name):
            at = re.search(rf"(?<![\w/.-]){re.escape(wanted)}(?![\w/-])", task)
            if at:
                found.setdefault(at.start(), file)
                break
    return [found[at] for at in sorted(found)]


def definitions_of(file: SourceFile) -> dict[str, Definition]:
    """The functions and classes of a file, and methods by `Class.name`."""
    tree = file.python
    found: dict[str, Definition] = {}
    for node in [] if tree is None else tree.body:
        if not isinstance(node, Definition):
            continue
        found[node.name] = node
        for inner in node.body if isinstance(node, ast.ClassDef) else []:
            if isinstance(inner, Function):
                found[f"{node.name}.{inner.name}"] = inner
    return found


def named_definitions(task: str, file: SourceFile) -> list[str]:
    """The definitions of a file that the task names, by itself or behind its class."""
    words = set(_NAME.findall(task))
    parts = {part for word in words for part in word.split(".")} - _WORDS
    parts |= {name for pair in _MARKED.findall(task) for name in pair if name}
    return [
        name
        for name in definitions_of(file)
        if name.rpartition(".")[2] in parts or ("." in name and name in words)
    ]


def chosen_files(task: str, workspace: Workspace) -> list[SourceFile]:
    """The files that a task is about, the most likely first; tests only if it names them."""
    named = named_files(task, workspace)
    if named:
        return named[:MAX_FILES]
    python = [file for file in workspace.of("python") if not is_test_path(file.path)]
    if len(python) == 1:
        return python
    defining = [(len(names), file) for file in python if (names := named_definitions(task, file))]
    if defining:
        defining.sort(key=lambda one: -one[0])
        return [file for _, file in defining[:MAX_FILES]]
    index = PassageIndex([f"{file.path} {file.text}" for file in python])
    return [python[at] for at, _ in index.search(task, 2)]


def shown_files(
    task: str,
    files: Sequence[SourceFile],
    *,
    room: int,
    count: Callable[[str], int],
    check: Callable[[str, str], str] = lambda where, text: text,
) -> list[ShownFile]:
    """The files as they are shown, in at most `room` tokens together.

    Args:
        task: names the definitions that are shown whole in any case.
        files: the most important first.
        room: tokens.
        count: the tokens of a text.
        check: a text as the model may read it.
    """
    found: list[ShownFile] = []
    for file in files:
        text = check(file.path, file.text)
        used = count(text)
        if used <= room:
            found.append(ShownFile(file.path, text))
        elif file.python is not None and text == file.text:
            text = outline(file, named_definitions(task, file))
            used = count(text)
            if used > room:
                continue
            found.append(ShownFile(file.path, text, is_whole=False))
        else:
            continue
        room -= used
    return found


def outline(file: SourceFile, whole: Sequence[str]) -> str:
    """A file with the bodies of its functions left out, except of those in `whole`."""
    hidden: set[int] = set()
    markers: dict[int, str] = {}
    for name, node in definitions_of(file).items():
        if isinstance(node, ast.ClassDef) or name in whole or name.partition(".")[0] in whole:
            continue
        body = node.body
        first, last = body[0].lineno, node.end_lineno or body[-1].lineno
        if first == node.lineno:
            continue
        hidden |= set(range(first, last + 1))
        markers[first] = " " * body[0].col_offset + "..."
    lines = []
    for number, line in enumerate(file.lines, 1):
        if number in markers:
            lines.append(markers[number])
        elif number not in hidden:
            lines.append(line)
    return "\n".join(lines) + "\n"
