"""The tree-sitter grammars that are installed, by the name of their language."""

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Parser

_GRAMMARS: Mapping[str, tuple[str, str]] = {
    language: (f"tree_sitter_{language}", "language")
    for language in (
        "bash", "c", "css", "go", "html", "java", "javascript", "json", "python", "rust", "toml", "yaml",
    )
} | {
    "typescript": ("tree_sitter_typescript", "language_typescript"),
    "tsx": ("tree_sitter_typescript", "language_tsx"),
}  # fmt: skip


def has_grammar(language: str | None) -> bool:
    """Whether `parser_of` knows the language."""
    return language in _GRAMMARS


@cache
def parser_of(language: str) -> "Parser":
    """A parser, made once for each language; parsers are not thread-safe while they parse.

    Raises:
        KeyError: there is no grammar for the language.
    """
    from tree_sitter import Language, Parser

    module, function = _GRAMMARS[language]
    return Parser(Language(getattr(import_module(module), function)()))
