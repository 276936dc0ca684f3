"""Syntax errors of languages other than Python, from tree-sitter's ERROR and MISSING nodes.

Error recovery often blames a place far from the cause. An unbalanced bracket is therefore looked for first,
among the leaves of the tree, where strings and comments do not count. Constructs that a grammar does not know
(newer CSS, macros) also give ERROR nodes: in those languages only unbalanced brackets are reported.
"""

import itertools
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from agents.api.finding import Finding
from agents.detectors.audit.syntax.rules import SYNTAX_ERROR
from agents.detectors.audit.syntax_nodes import ancestors, line_of, node_text, walk
from agents.workspace.source_file import SourceFile

if TYPE_CHECKING:
    from tree_sitter import Node

GRAMMAR_LANGUAGES = frozenset(
    ["javascript", "typescript", "tsx", "go", "rust", "java", "c", "css", "html", "bash"]
)
_BRACKETS_ONLY = frozenset(["css", "c"])
_NO_BRACKETS = frozenset(["bash", "html"])  # `case x)` and text
_RUST_GAPS = ("try!", "#[", "where", "safe ", "!", "::<", "$", "~")
"""How code begins that the Rust grammar does not know, though it is valid."""

_CLOSING = {")": "(", "]": "[", "}": "{"}
MAX_ERRORS = 10


def check_grammar(file: SourceFile) -> Iterator[Finding]:
    """Findings of one source file."""
    if file.tree is None or file.path.endswith(".ps1"):
        return
    root = file.tree.root_node
    if file.language == "go":
        yield from _go_braces(file)
    if not root.has_error and file.language != "html":
        return
    language = file.language or ""
    if language not in _NO_BRACKETS:
        unbalanced = _unbalanced(root)
        if unbalanced is not None:
            yield _at(file, *unbalanced)
            return
    if language == "html":
        yield from _check_html(file, root)
    elif language not in _BRACKETS_ONLY or _is_plain_statement_error(root):
        yield from _errors(file, root)


_GO_HEAD = re.compile(r"^\s*(\}\s*)?(if|for|switch|func|else|select)\b(?!.*[{,(\[+&|]\s*(//.*)?$)")


def _go_braces(file: SourceFile) -> Iterator[Finding]:
    """A brace on a line of its own after the head of a block: Go has ended the statement before it."""
    for number, (line, following) in enumerate(itertools.pairwise(file.lines), 1):
        if following.strip() == "{" and _GO_HEAD.match(line) and "`" not in file.text:
            yield _at(file, number, "the opening brace must stand on the line of its statement")


def _at(file: SourceFile, line: int, reason: str) -> Finding:
    return SYNTAX_ERROR.at(file, line, f"The file does not parse: {reason}.", confidence=0.9)


def _unbalanced(root: "Node") -> tuple[int, str] | None:
    """The first bracket without its counterpart.

    A closing bracket of the wrong kind blames the opening one if that is on an earlier line.
    """
    opened: list[tuple[str, int]] = []
    for leaf in walk(root, "(", ")", "[", "]", "{", "}", "${", "#{"):
        if leaf.child_count or leaf.is_missing:
            continue
        kind = leaf.type[-1]
        if kind in "([{":
            opened.append((kind, line_of(leaf)))
        elif not opened:
            return line_of(leaf), f"{kind!r} has no opening bracket"
        elif opened[-1][0] != _CLOSING[kind]:
            bracket, line = opened[-1]
            return line, f"{bracket!r} is not closed before the {kind!r} of line {line_of(leaf)}"
        else:
            opened.pop()
    if opened:
        return opened[-1][1], f"{opened[-1][0]!r} is never closed"
    return None


def _is_plain_statement_error(root: "Node") -> bool:
    """Whether C's only complaint is a missing token, which macros do not explain."""
    return any(node.is_missing and node.type == ";" for node in walk(root))


def _errors(file: SourceFile, root: "Node") -> Iterator[Finding]:
    last = -10
    count = 0
    for node in walk(root):
        if not (node.is_missing or node.type == "ERROR"):
            continue
        if node.type == "ERROR" and any(
            child.type == "ERROR" or child.is_missing for child in walk(node) if child != node
        ):
            continue  # an inner node is more exact
        if _is_gap(node, file.language or ""):
            continue
        line, reason = _place(node)
        if line - last <= 3 or count >= MAX_ERRORS:
            continue
        last = line
        count += 1
        yield _at(file, line, reason)


def _is_gap(node: "Node", language: str) -> bool:
    """Whether the grammar is known to refuse this valid code."""
    if language == "bash":
        return node.is_missing and node.type == "word"
    if language != "rust":
        return False
    if node_text(node).lstrip().startswith(_RUST_GAPS):
        return True
    return any(one.type in ("macro_invocation", "macro_definition") for one in ancestors(node))


def _place(node: "Node") -> tuple[int, str]:
    if node.is_missing:
        before = node.prev_sibling
        line = before.end_point[0] + 1 if before is not None else line_of(node)
        return line, f"{node.type!r:.40} is missing"
    text = " ".join(node_text(node).split())
    if node.end_point[0] - node.start_point[0] > 1 and node.children:
        # A long region was skipped: the parser gave up at its last token.
        return node.children[-1].start_point[0] + 1, "unexpected input"
    return line_of(node), f"unexpected {text!r:.60}" if text else "unexpected input"


_OPTIONAL_END = frozenset([
    "p", "li", "dt", "dd", "option", "optgroup", "tr", "td", "th", "thead", "tbody", "tfoot", "html", "head",
    "body", "colgroup", "rt", "rp",
])  # fmt: skip


def _check_html(file: SourceFile, root: "Node") -> Iterator[Finding]:
    """End tags without a start tag, elements that are never closed, and malformed tags."""
    for node in walk(root, "erroneous_end_tag", "ERROR", "element"):
        if node.type == "element":
            start = node.children[0] if node.children else None
            last = node.children[-1] if node.children else None
            if start is None or last is None or start.type != "start_tag":
                continue
            name = node_text(start.named_children[0]) if start.named_children else ""
            closed = last.type == "end_tag" and not last.is_missing
            if not closed and name.lower() not in _OPTIONAL_END | _VOID:
                yield _at(file, line_of(start), f"<{name:.40}> is never closed")
        elif node.type == "erroneous_end_tag":
            name = node_text(node).strip("</> \n")
            if name.lower() not in _OPTIONAL_END:
                yield _at(file, line_of(node), f"</{name:.40}> closes nothing")
        elif not any(mark in node_text(node) for mark in ("{{", "{%", "<%", "<?", "&")):
            yield _at(file, line_of(node), f"unexpected {node_text(node)!r:.60}")


_VOID = frozenset([
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track",
    "wbr",
])  # fmt: skip
