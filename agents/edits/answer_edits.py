"""`propose_edits`: from the fences of a model's answer to edits of files.

The file of a fence is the one that it names; else the only one that has one of its definitions; else, of the
files that were given, the only one in its language. Several fences change a file one after the other.
"""

import ast
import posixpath
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from agents.api.errors import InvalidTask
from agents.edits.block_match import match_blocks
from agents.edits.fences import Fence, read_fences
from agents.edits.file_edit import FileEdit
from agents.edits.passages import (
    Passage,
    has_search_blocks,
    is_applied,
    is_diff,
    place_passages,
    read_hunks,
    read_search_blocks,
)
from agents.edits.python_merge import defined_names, merge_python, parse_snippet
from agents.edits.source_lines import SourceLines, Splice

_SUFFIXES: Mapping[str, frozenset[str]] = {
    "python": frozenset({".py", ".pyi"}),
    "javascript": frozenset({".js", ".mjs", ".cjs", ".jsx"}),
    "typescript": frozenset({".ts", ".tsx", ".mts"}),
    "rust": frozenset({".rs"}),
    "go": frozenset({".go"}),
    "c": frozenset({".c", ".h"}),
    "cpp": frozenset({".cc", ".cpp", ".cxx", ".hpp", ".h"}),
    "java": frozenset({".java"}),
    "ruby": frozenset({".rb"}),
    "shell": frozenset({".sh", ".bash"}),
    "json": frozenset({".json"}),
    "yaml": frozenset({".yaml", ".yml"}),
    "toml": frozenset({".toml"}),
    "html": frozenset({".html", ".htm"}),
    "css": frozenset({".css"}),
    "sql": frozenset({".sql"}),
    "markdown": frozenset({".md"}),
    "ini": frozenset({".ini", ".cfg"}),
}  # fmt: skip
_ALIASES = {
    "py": "python", "python3": "python", "pyi": "python",
    "js": "javascript", "jsx": "javascript", "node": "javascript",
    "ts": "typescript", "tsx": "typescript",
    "rs": "rust", "golang": "go", "c++": "cpp", "cc": "cpp", "h": "c", "rb": "ruby",
    "sh": "shell", "bash": "shell", "zsh": "shell", "yml": "yaml", "md": "markdown", "cfg": "ini",
    "htm": "html",
}  # fmt: skip
_OUTPUT = frozenset(
    {"text", "txt", "console", "output", "plaintext", "log", "pycon", "shell-session"}
)
"""Languages of fences that show output."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """What an answer would change.

    Attributes:
        edits: one for each file that changes.
        refused: sentences, each why code of the answer has no place.
        unchanged: files that have the answer's code already.
    """

    edits: tuple[FileEdit, ...] = ()
    refused: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()


def propose_edits(
    answer: str,
    files: Mapping[str, bytes],
    *,
    find: Callable[[str], tuple[str, bytes | None] | None] = lambda name: None,
) -> Proposal:
    """The edits of an answer. Deterministic; reads nothing but what it is given.

    Args:
        answer: Markdown.
        files: the files that the model was shown, by their paths.
        find: the path and contents of a file that only the answer names, or its path and None for a file
            that can be created; None for no such file.
    """
    fences = read_fences(answer)
    if not fences:
        return Proposal()
    return _Proposing(files, find).run(fences)


class _Proposing:
    def __init__(
        self,
        files: Mapping[str, bytes],
        find: Callable[[str], tuple[str, bytes | None] | None],
    ) -> None:
        self._given = dict(files)
        self._find = find
        self._before: dict[str, bytes | None] = {}
        self._after: dict[str, bytes] = {}
        self._names: dict[str, list[str]] = {}
        self._left_out: dict[str, int] = {}
        self._same: list[str] = []

    def run(self, fences: list[Fence]) -> Proposal:
        refused: list[str] = []
        for fence in fences:
            try:
                self._take(fence)
            except InvalidTask as error:
                refused.append(str(error))
            except RecursionError:
                refused.append("The code of the answer is nested too deeply.")
        edits = []
        for path, after in self._after.items():
            before = self._before[path]
            if after == before:
                self._same.append(path)
                continue
            names = tuple(dict.fromkeys(self._names.get(path, ())))
            edits.append(FileEdit(path, before, after, names, self._left_out.get(path, 0)))
        return Proposal(
            tuple(edits), tuple(dict.fromkeys(refused)), tuple(dict.fromkeys(self._same))
        )

    # A fence.

    def _take(self, fence: Fence) -> None:
        if has_search_blocks(fence.code):
            self._take_passages(read_search_blocks(fence.code), fence)
        elif fence.language in ("diff", "patch") or (not fence.language and is_diff(fence.code)):
            self._take_passages(read_hunks(fence.code), fence)
        elif (path := self._path_of(fence)) is not None:
            self._take_code(path, fence)

    def _take_passages(self, passages: list[Passage], fence: Fence) -> None:
        by_path: dict[str, list[Passage]] = {}
        for one in passages:
            path = self._resolve(one.path) if one.path else None
            path = path or self._named(fence) or self._only_file(one.path)
            by_path.setdefault(path, []).append(one)
        staged: dict[str, bytes] = {}
        for path, own in by_path.items():
            source = self._source(path)
            if is_applied(source, own):
                self._same.append(path)
            else:
                staged[path] = source.spliced(place_passages(path, source, own))
        self._after |= staged

    def _take_code(self, path: str, fence: Fence) -> None:
        code = fence.code_below_path
        source = self._source(path)
        is_python = path.endswith((".py", ".pyi"))
        if not any(line.strip() for line in source.lines):
            if is_python:
                parse_snippet(code)
            self._after[path] = _replaced(source, code)
        elif is_python:
            self._merge_python(path, source, code)
        else:
            self._after[path] = source.spliced(match_blocks(path, source, code))

    def _merge_python(self, path: str, source: SourceLines, code: str) -> None:
        try:
            merge = merge_python(path, source, code)
        except InvalidTask:
            if not _replaces_broken(source, code):
                raise
            self._after[path] = _replaced(source, code)
            return
        self._after[path] = source.spliced(merge.splices)
        self._names.setdefault(path, []).extend(merge.names)
        self._left_out[path] = self._left_out.get(path, 0) + merge.left_out

    # Which file.

    def _path_of(self, fence: Fence) -> str | None:
        """The file that a fence changes; None if it changes none."""
        named = self._named(fence)
        if named is not None:
            return named
        language = _ALIASES.get(fence.language, fence.language)
        if language in _OUTPUT:
            return None
        names = defined_names(fence.code) if language in ("python", "") else set()
        if language == "python" and not names and not _assigns_known(fence.code, self._given):
            return None  # an example
        candidates = self._candidates(language)
        if names:
            having = [path for path in candidates if names & defined_names(self._source(path).text)]
            if len(having) > 1:
                listed = " and ".join(having)
                raise InvalidTask(
                    f"{listed} define {_some(names)}: the answer does not say which is meant."
                )
            if having:
                return having[0]
            tests = all(name.startswith(("test_", "Test")) for name in names)
            candidates = [path for path in candidates if _is_test_file(path) == tests]
        if not language and not names:
            return None
        return candidates[0] if len(candidates) == 1 else None

    def _named(self, fence: Fence) -> str | None:
        """The file that a fence names.

        Raises:
            InvalidTask: it names several, or one that is not there.
        """
        for name in (fence.info_path, fence.comment_path, fence.heading_path):
            if name:
                path = self._resolve(name)
                if path is not None:
                    return path
        known = {path for name in fence.mentioned_paths if (path := self._known(name))}
        return known.pop() if len(known) == 1 else None

    def _resolve(self, name: str) -> str | None:
        """The path of a name: of a file that was given, else of one that is found."""
        path = self._known(name)
        if path is not None:
            return path
        found = self._find(name)
        if found is None:
            return None
        path, data = found
        self._before.setdefault(path, data)
        return path

    def _known(self, name: str) -> str | None:
        name = posixpath.normpath(name.replace("\\", "/"))
        if name in self._given or name in self._before:
            return name
        ends = [
            path for path in self._given if path.endswith(f"/{name}") or name.endswith(f"/{path}")
        ]
        return ends[0] if len(ends) == 1 else None

    def _only_file(self, name: str) -> str:
        if name:
            raise InvalidTask(f"The answer changes {name}, which was not attached and is not here.")
        if len(self._given) != 1:
            raise InvalidTask("The answer does not say which file its change is for.")
        return next(iter(self._given))

    def _candidates(self, language: str) -> list[str]:
        suffixes = _SUFFIXES.get(language)
        if suffixes is None and language:
            return [path for path in self._given if path.lower().endswith(f".{language}")]
        return [
            path
            for path in self._given
            if suffixes is None or posixpath.splitext(path)[1].lower() in suffixes
        ]

    def _source(self, path: str) -> SourceLines:
        """The file as it is after the fences before."""
        if path not in self._before:
            self._before[path] = self._given[path]
        data = self._after.get(path, self._before[path])
        return SourceLines(data or b"", path)


def _replaced(source: SourceLines, code: str) -> bytes:
    """The file with all of its lines replaced."""
    lines = tuple(code.rstrip("\n").split("\n"))
    return source.spliced([Splice(0, len(source.lines), lines)])


def _replaces_broken(source: SourceLines, code: str) -> bool:
    """Whether code is a whole program in place of a file that does not parse."""
    try:
        ast.parse(source.text)
    except (SyntaxError, ValueError):
        names = {
            line.split("(")[0].split(":")[0].split()[1]
            for line in source.lines
            if line.startswith(("def ", "class ")) and len(line.split()) > 1
        }
        return bool(names) and names <= defined_names(code)
    return False


def _assigns_known(code: str, files: Mapping[str, bytes]) -> bool:
    """Whether code consists of assignments to names that a file assigns at its top, such as a constant."""
    try:
        body = ast.parse(code).body
    except (SyntaxError, ValueError):
        return False
    names = [
        node.targets[0].id
        for node in body
        if isinstance(node, ast.Assign)
        and len(node.targets) == 1
        and isinstance(node.targets[0], ast.Name)
    ]
    known = b"\n".join(files.values())
    return (
        bool(names)
        and len(names) == len(body)
        and all(f"\n{name} =".encode() in b"\n" + known for name in names)
    )


def _is_test_file(path: str) -> bool:
    name = posixpath.basename(path)
    return name.startswith("test_") or name.endswith("_test.py") or name == "conftest.py"


def _some(names: set[str]) -> str:
    return " and ".join(sorted(names)[:2])
