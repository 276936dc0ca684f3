"""Calls and values in the languages that tree-sitter parses: JavaScript, TypeScript, Go, Rust and Java."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from agents.detectors.audit.python_module import is_test_path
from agents.detectors.detector import DetectorContext
from agents.detectors.security.taint.tree_values import CALLS, STRINGS, TreeEvaluator
from agents.detectors.security.taint.value import Value
from agents.workspace.source_file import SourceFile
from agents.workspace.workspace import Workspace

if TYPE_CHECKING:
    from tree_sitter import Node

LANGUAGES = ("javascript", "typescript", "tsx", "go", "rust", "java")
_ASSIGNMENTS = {
    "variable_declarator": ("name", "value"),
    "assignment_expression": ("left", "right"),
    "augmented_assignment_expression": ("left", "right"),
    "short_var_declaration": ("left", "right"),
    "assignment_statement": ("left", "right"),
    "var_spec": ("name", "value"),
    "let_declaration": ("pattern", "value"),
    "compound_assignment_expr": ("left", "right"),
}
_FUNCTIONS = frozenset([
    "function_declaration", "function_expression", "arrow_function", "method_definition", "func_literal",
    "method_declaration", "function_item", "closure_expression", "constructor_declaration", "lambda_expression",
    "function", "generator_function",
])  # fmt: skip
_SPACE = re.compile(r"\s+")
_COMMENTS = frozenset(["comment", "line_comment", "block_comment"])
_OTHERS = frozenset([
    "binary_expression", "import_spec", "jsx_attribute", "keyed_element", "pair", "regex", "template_string",
    "token_tree", "unary_expression", "unsafe_block",
])  # fmt: skip
"""Types of nodes that detectors ask for besides calls, assignments and functions."""
_INDEXED = _OTHERS | frozenset(CALLS) | frozenset(_ASSIGNMENTS) | _FUNCTIONS


@dataclass(frozen=True, slots=True)
class TreeCall:
    """A call: what is called as text without spaces, its argument nodes, and the node itself."""

    name: str
    arguments: tuple["Node", ...]
    node: "Node"

    @property
    def line(self) -> int:
        """First line, from 1."""
        return self.node.start_point[0] + 1

    @property
    def end_line(self) -> int:
        """Last line."""
        return self.node.end_point[0] + 1


class TreeCode:
    """One file. Values are looked up within the enclosing function, then the file's top level."""

    def __init__(self, file: SourceFile) -> None:
        self.file = file
        self.data = file.text.encode("utf-8", "replace")

    def text(self, node: "Node | None") -> str:
        """The source text of a node."""
        if node is None:
            return ""
        return self.data[node.start_byte : node.end_byte].decode("utf-8", "replace")

    @cached_property
    def _indexed(self) -> dict[str, list["Node"]]:
        """The nodes of the types that anybody asks for, each list in the order of the text.

        The rest is not kept: a Python object for each node of a large repository takes gigabytes.
        """
        found: dict[str, list[Node]] = {}
        tree = self.file.tree
        if tree is None:
            return found
        cursor = tree.walk()
        while True:
            node = cursor.node
            if node is not None and node.type in _INDEXED and node.is_named:
                found.setdefault(node.type, []).append(node)
            if cursor.goto_first_child() or cursor.goto_next_sibling():
                continue
            while cursor.goto_parent():
                if cursor.goto_next_sibling():
                    break
            else:
                return found

    def of_type(self, *kinds: str) -> Iterator["Node"]:
        """The nodes of these types.

        Raises:
            KeyError: a type is not indexed: add it to `_OTHERS`.
        """
        for kind in kinds:
            if kind not in _INDEXED:
                raise KeyError(kind)
            yield from self._indexed.get(kind, ())

    @cached_property
    def calls(self) -> tuple["TreeCall", ...]:
        """All calls, constructor calls and macros, in the order of the text."""
        found = [self._called(node) for kind in CALLS for node in self._indexed.get(kind, ())]
        if self.file.language == "rust":
            found += self._calls_in_macros()
        return tuple(sorted(found, key=lambda call: call.node.start_byte))

    def _called(self, node: "Node") -> "TreeCall":
        fields = CALLS[node.type]
        name = self.text(node.child_by_field_name(fields[0]))
        if node.type == "method_invocation" and (owner := node.child_by_field_name("object")):
            name = f"{self.text(owner)}.{name}"
        if node.type == "macro_invocation":
            inner = [child for child in node.named_children if child.type == "token_tree"]
            return TreeCall(f"{name}!", tuple(inner), node)
        listed = node.child_by_field_name("arguments")
        arguments = (
            []
            if listed is None
            else [one for one in listed.named_children if one.type not in _COMMENTS]
        )
        return TreeCall(_SPACE.sub("", name).replace("?.", "."), tuple(arguments), node)

    def _calls_in_macros(self) -> Iterator["TreeCall"]:
        """`a::b(…)` within `println!(…)`, which the grammar leaves as tokens; the arguments are one token tree."""
        for tree in self._indexed.get("token_tree", ()):
            before: list[str] = []
            for child in tree.children:
                if child.type in ("identifier", "::", "."):
                    before.append(self.text(child))
                    continue
                if child.type == "token_tree" and before and self.text(child).startswith("("):
                    yield TreeCall("".join(before), (child,), child)
                before = []

    def line(self, node: "Node") -> int:
        """First line of a node, from 1."""
        return int(node.start_point[0]) + 1

    @cached_property
    def _assigned(self) -> dict[str, list[tuple[int, int, "Node"]]]:
        """By variable: start of the enclosing function, place, and what was assigned."""
        found: dict[str, list[tuple[int, int, Node]]] = {}
        for node in self.of_type(*_ASSIGNMENTS):
            fields = _ASSIGNMENTS[node.type]
            left, right = node.child_by_field_name(fields[0]), node.child_by_field_name(fields[1])
            if left is None or right is None:
                continue
            scope = self._scope(node)
            for name in re.findall(r"[A-Za-z_$][\w$]*", self.text(left))[:20]:
                found.setdefault(name, []).append((scope, node.start_byte, right))
        return found

    def literal(self, name: str) -> tuple[str, int] | None:
        """The text and line of the string that a name is always assigned in this file, or None."""
        found = [right for _, _, right in self._assigned.get(name, ())]
        inner = found[0] if len(found) == 1 else None
        while inner is not None and inner.type in ("expression_list", "parenthesized_expression"):
            inner = inner.named_children[0] if inner.named_children else None
        if inner is None or inner.type not in STRINGS:
            return None
        return self.text(inner), self.line(inner)

    def function(self, node: "Node") -> "Node | None":
        """The innermost function around a node."""
        parent: Node | None = node
        while parent is not None and parent.type not in _FUNCTIONS:
            parent = parent.parent
        return parent

    def function_name(self, node: "Node") -> str:
        """The name of the innermost named function around a node, or empty."""
        parent = self.function(node)
        while parent is not None:
            name = parent.child_by_field_name("name")
            if name is None and parent.parent is not None:
                fields = _ASSIGNMENTS.get(parent.parent.type, ("key", ""))
                name = parent.parent.child_by_field_name(fields[0])
            if name is not None:
                return self.text(name)
            parent = self.function(parent.parent) if parent.parent is not None else None
        return ""

    def text_of_function(self, node: "Node", *, until: int | None = None) -> str:
        """The text of the innermost function around a node (of the file outside one), up to a byte offset."""
        function = self.function(node)
        begin = function.start_byte if function is not None else 0
        end = function.end_byte if function is not None else len(self.data)
        return self.data[begin : end if until is None else until].decode("utf-8", "replace")

    def parameter(self, name: str, node: "Node") -> str:
        """The text of the parameter of this name of an enclosing function, or empty."""
        function = self.function(node)
        while function is not None:
            listed = function.child_by_field_name("parameters") or function.child_by_field_name(
                "parameter"
            )
            if listed is not None and name in self.text(listed):
                for one in listed.named_children or [listed]:
                    if re.search(rf"(?<![\w$]){re.escape(name)}(?![\w$])", self.text(one)):
                        return self.text(one)
            function = self.function(function.parent) if function.parent is not None else None
        return ""

    def _scope(self, node: "Node | None") -> int:
        while node is not None and node.type not in _FUNCTIONS:
            node = node.parent
        return node.start_byte if node is not None else -1

    def assigned_before(self, name: str, node: "Node") -> list["Node"]:
        """What a name was assigned before a node: in the function around it, or else last before that."""
        scope = self._scope(node)
        known = self._assigned.get(name, [])
        found = [
            right for where, place, right in known if where == scope and place <= node.start_byte
        ]
        if not found and scope != -1 and not self.parameter(name, node):
            found = [
                right for where, place, right in known if where < scope and place < node.start_byte
            ][-1:]
        return found

    @cached_property
    def _evaluator(self) -> TreeEvaluator:
        return TreeEvaluator(self)

    def value(self, node: "Node | None") -> Value:
        """The value of an expression."""
        return self._evaluator.value(node)


def tree_code(file: SourceFile) -> TreeCode:
    """The code of one file, indexed once."""
    return file.derived(TreeCode)


def tree_files(
    workspace: Workspace,
    context: DetectorContext,
    languages: Iterable[str] = LANGUAGES,
    *,
    tests: bool = False,
) -> Iterator[SourceFile]:
    """The files in these languages that people wrote: no minified ones and, unless asked for, no tests.

    Raises:
        Cancelled: the run was cancelled.
    """
    for file in workspace.of(*languages):
        context.check_cancelled()
        if (tests or not is_test_path(file.path)) and not file.derived(_is_generated):
            yield file


_GENERATED_NAME = re.compile(
    r"\.min\.[cm]?js$|[.-]bundle\.js$|\.pb\.go$|_pb\.js$|(^|/)(node_modules|bower_components)/"
)
_GENERATED_LINE = 3_000
"""Characters in a line that nobody wrote."""
_GENERATED_MEAN = 150
"""Characters a line in a file that was packed."""


def _is_generated(file: SourceFile) -> bool:
    if _GENERATED_NAME.search(file.path):
        return True
    if any(len(line) > _GENERATED_LINE for line in file.lines):
        return True
    if len(file.lines) > 10 and len(file.text) > _GENERATED_MEAN * len(file.lines):
        return True
    return bool(re.search(r"(?i)code generated .{0,60}do not edit|@generated\b", file.text[:2_000]))
