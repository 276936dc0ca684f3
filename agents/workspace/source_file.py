"""`SourceFile`: the text of one file, its lines and its syntax trees, each computed once."""

import ast
import threading
import warnings
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar, cast

from agents.workspace.languages import language_of
from engine.retrieval.parsing.grammars import has_grammar, parser_of

if TYPE_CHECKING:
    from tree_sitter import Tree

_PARSING = threading.Lock()
_T = TypeVar("_T")


class SourceFile:
    """One file, read when the workspace was opened. Safe for concurrent readers.

    Attributes:
        path: relative to the workspace's root, with `/`.
        data: its bytes.
    """

    def __init__(self, path: str, data: bytes) -> None:
        self.path = path
        self.data = data
        self._derived: dict[Any, Any] = {}

    def __repr__(self) -> str:
        return f"SourceFile({self.path!r})"

    @cached_property
    def text(self) -> str:
        """Decoded as UTF-8, a byte-order mark removed, invalid bytes replaced; line ends are LF."""
        text = self.data.decode("utf-8-sig", "replace")
        return text.replace("\r\n", "\n").replace("\r", "\n")

    @cached_property
    def lines(self) -> tuple[str, ...]:
        """The lines without their ends; line `n` is `lines[n - 1]`."""
        return tuple(self.text.split("\n"))

    @cached_property
    def language(self) -> str | None:
        """The language's name (`agents.workspace.languages`), or None."""
        return language_of(self.path, self.lines[0])

    def quote(self, line: int, end_line: int | None = None) -> str:
        """The text of lines `line` to `end_line`, without the margin; empty outside the file."""
        return "\n".join(one.strip() for one in self.lines[max(0, line - 1) : end_line or line])

    @cached_property
    def python(self) -> ast.Module | None:
        """Python's own syntax tree, or None if the file is no valid Python. Nothing is executed."""
        if self.language != "python":
            return None
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # invalid escapes in the code that is looked at
                return ast.parse(self.text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None

    def derived(self, make: Callable[["SourceFile"], _T]) -> _T:
        """What a function computes from this file, computed once; several detectors look at each file.

        Two threads may both compute it; one result stays. Keep what `make` returns small.
        """
        if make not in self._derived:
            self._derived.setdefault(make, make(self))
        return cast(_T, self._derived[make])

    @cached_property
    def tree(self) -> "Tree | None":
        """The tree-sitter tree (over the UTF-8 of `text`), or None if there is no grammar."""
        if self.language is None or not has_grammar(self.language):
            return None
        with _PARSING:
            return parser_of(self.language).parse(self.text.encode("utf-8", "replace"))
