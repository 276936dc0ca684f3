"""Calls and values in the languages that tree-sitter parses: JavaScript, TypeScript, Go, Rust and Java."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from agents.detectors.detector import DetectorContext
from agents.detectors.security.python_files import is_test_path
from agents.workspace.source_file import SourceFile
from agents.workspace.workspace import Workspace

if TYPE_CHECKING:
    from tree_sitter import Node

LANGUAGES = ("javascript", "typescript", "tsx", "go", "rust", "java")
_CALLS = {
    "call_expression": ("function", "arguments"),
    "new_expression": ("constructor", "arguments"),
    "method_invocation": ("name", "arguments"),
    "object_creation_expression": ("type", "arguments"),
    "macro_invocation": ("macro", ""),
}
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
_FUNCTIONS = frozenset(
    [
        "function_declaration",
        "function_expression",
        "arrow_function",
        "method_definition",
        "func_literal",
        "method_declaration",
        "function_item",
        "closure_expression",
        "constructor_declaration",
        "lambda_expression",
        "function",
        "generator_function",
    ]
)
_STRINGS = frozenset(
    [
        "string",
        "string_literal",
        "interpreted_string_literal",
        "raw_string_literal",
        "raw_string",
        "text_block",
        "char_literal",
    ]
)
_LITERALS = _STRINGS | frozenset(
    [
        "number",
        "true",
        "false",
        "null",
        "undefined",
        "int_literal",
        "float_literal",
        "integer_literal",
        "boolean_literal",
        "nil",
        "none",
        "rune_literal",
        "decimal_integer_literal",
        "hex_integer_literal",
        "regex",
        "null_literal",
    ]
)
_FORMATTERS = re.compile(
    r"^(fmt\.Sprintf|fmt\.Sprint|fmt\.Sprintln|fmt\.Errorf|strings\.Join|String\.format|util\.format|format|concat"
    r"|String\.join|MessageFormat\.format|format_args)$"
)
_SAFE = re.compile(
    r"(^|\.)(parseInt|parseFloat|Number|Boolean|Atoi|ParseInt|ParseUint|ParseFloat|ParseBool|parse::<[iuf]\d+>|valueOf"
    r"|encodeURIComponent|encodeURI|escape\w*|sanitize\w*|quote\w*|EscapeString|HTMLEscapeString|QueryEscape|PathEscape"
    r"|Base|basename|len|length|Itoa|toFixed|parseLong|parseUnsignedInt|fromString|getTime|now|shellescape|Quote)$"
)
_USER = re.compile(
    r"\b(req|request|ctx\.request|ctx)\.(body|query|params|param|headers|cookies|header|url|originalUrl|files|file|get)\b"
    r"|\b(r|req|request)\.(FormValue|PostFormValue|URL|Form|PostForm|Header|Body|Cookie|PathValue)\b"
    r"|\b(c|ctx)\.(Query|Param|PostForm|FormValue|QueryParam|DefaultQuery|GetHeader|Params|BodyParser|QueryArgs)\b|\bchi\.URLParam\b"
    r"|\bmux\.Vars\b|\bgetParameter\(|\bgetHeader\(|\bgetQueryString\(|\blocation\.(hash|search|href)\b"
    r"|\bdocument\.(referrer|cookie|URL|documentURI)\b|\bevent\.(body|queryStringParameters|pathParameters|data)\b|\bwindow\.name\b"
    r"|\bsearchParams\b|\bURLSearchParams\b|\bctx\.query\b|\bprocess\.argv\b|\benv::args\b|\bos\.Args\b"
)
_USER_PARAMETER = re.compile(
    r"\b(web::)?(Path|Query|Json|Form|RawQuery|TypedHeader|Multipart|Bytes)\s*[<(]|\bHttpRequest\b"
    r"|@(Body|Query|Param|Headers|Req|RequestParam|PathVariable|RequestBody|RequestHeader|CookieValue|QueryParam|PathParam)\b"
    r"|^\{[^}]*\b(body|query|params)\b"
)
"""Parameters that a web framework fills with what a client sends."""
_PLACEHOLDERS = re.compile(
    r"(fill|map|repeat|Repeat)\([^()]*(\(\s*\w*\s*(,\s*\w+\s*)?\)\s*=>|\w+\s*=>)?\s*[\"'`](\?|\$|:)[^\"'`]{0,12}[\"'`]"
)
"""Code that makes the question marks of a prepared statement."""
_MAX_DEPTH = 12
_SPACE = re.compile(r"\s+")
_COMMENTS = frozenset(["comment", "line_comment", "block_comment"])
_OTHERS = frozenset(
    [
        "binary_expression",
        "import_spec",
        "jsx_attribute",
        "keyed_element",
        "pair",
        "regex",
        "template_string",
        "token_tree",
        "unary_expression",
        "unsafe_block",
    ]
)
"""Types of nodes that detectors ask for besides calls, assignments and functions."""
_INDEXED = _OTHERS | frozenset(_CALLS) | frozenset(_ASSIGNMENTS) | _FUNCTIONS


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


@dataclass(frozen=True, slots=True)
class TreeValue:
    """What is known about an expression.

    Attributes:
        varying: whether it is not constant.
        built: whether it is a string put together from varying parts.
        user: whether it holds data of a client.
        text: its constant text.
    """

    varying: bool = False
    built: bool = False
    user: bool = False
    text: str = ""


_UNKNOWN = TreeValue(varying=True)


class TreeCode:
    """One file. Values are looked up within the enclosing function, then the file's top level."""

    def __init__(self, file: SourceFile) -> None:
        self.file = file
        self._bytes = file.text.encode("utf-8", "replace")

    def text(self, node: "Node | None") -> str:
        """The source text of a node."""
        if node is None:
            return ""
        return self._bytes[node.start_byte : node.end_byte].decode("utf-8", "replace")

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
        found = [self._called(node) for kind in _CALLS for node in self._indexed.get(kind, ())]
        if self.file.language == "rust":
            found += self._calls_in_macros()
        return tuple(sorted(found, key=lambda call: call.node.start_byte))

    def _called(self, node: "Node") -> "TreeCall":
        fields = _CALLS[node.type]
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
        if inner is None or inner.type not in _STRINGS:
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
        end = function.end_byte if function is not None else len(self._bytes)
        return self._bytes[begin : end if until is None else until].decode("utf-8", "replace")

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

    def value(self, node: "Node | None", depth: int = 0) -> TreeValue:
        """The value of an expression."""
        if node is None or depth > _MAX_DEPTH:
            return _UNKNOWN
        kind = node.type
        if kind in _LITERALS:
            return TreeValue(text=self.text(node))
        if kind == "template_string":
            parts = [one for one in node.named_children if one.type == "template_substitution"]
            return self._built(self.text(node), [self._only_child(one, depth) for one in parts])
        if kind in ("binary_expression", "augmented_assignment_expression"):
            left = self.value(node.child_by_field_name("left"), depth + 1)
            right = self.value(node.child_by_field_name("right"), depth + 1)
            if not re.search(r"(?<![+=!<>])\+", self.text(node)):
                return TreeValue(left.varying or right.varying, user=left.user or right.user)
            return self._built(
                f"{left.text} {right.text}",
                [left, right],
                strings='"' in left.text + right.text
                or "'" in left.text + right.text
                or left.built
                or right.built,
            )
        if kind == "macro_invocation":
            if re.match(r"(format|concat|format_args)!", self.text(node)):
                return self._format_macro(node, depth)
            return _UNKNOWN
        if kind in _CALLS:
            return self._call(node, depth)
        if kind in ("identifier", "shorthand_property_identifier", "type_identifier"):
            return self._variable(node, depth)
        if kind in (
            "member_expression",
            "subscript_expression",
            "selector_expression",
            "field_expression",
            "index_expression",
            "field_access",
            "array_access",
        ):
            return self._member(node, depth)
        if kind in (
            "array",
            "array_expression",
            "object",
            "composite_literal",
            "literal_value",
            "tuple_expression",
        ):
            values = [self.value(one, depth + 1) for one in node.named_children[:30]]
            return TreeValue(
                any(one.varying for one in values), user=any(one.user for one in values)
            )
        inner = [
            one for one in node.named_children if one.type not in ("type_identifier", "comment")
        ]
        values = [self.value(one, depth + 1) for one in inner[:12]]
        return TreeValue(
            any(one.varying for one in values) or not values,
            any(one.built for one in values),
            any(one.user for one in values),
            " ".join(one.text for one in values),
        )

    def _only_child(self, node: "Node", depth: int) -> TreeValue:
        return self.value(node.named_children[0], depth + 1) if node.named_children else TreeValue()

    def _built(self, text: str, parts: list[TreeValue], *, strings: bool = True) -> TreeValue:
        varying = any(one.varying for one in parts)
        return TreeValue(varying, varying and strings, any(one.user for one in parts), text[:2000])

    def _format_macro(self, node: "Node", depth: int) -> TreeValue:
        text = self.text(node)
        tree = next((one for one in node.named_children if one.type == "token_tree"), None)
        names = re.findall(r"\{([A-Za-z_]\w*)(?::[^{}]*)?\}", text)
        if tree is not None:
            names += [self.text(one) for one in tree.named_children if one.type == "identifier"]
        values = [self._named(name, node, depth + 1) for name in names[:20] if name != "self"]
        if _USER.search(text):
            values.append(TreeValue(varying=True, user=True))
        return self._built(text, values)

    def _call(self, node: "Node", depth: int) -> TreeValue:
        fields = _CALLS[node.type]
        name = self.text(node.child_by_field_name(fields[0]))
        owner = node.child_by_field_name("object")
        full = re.sub(r"\s+", "", f"{self.text(owner)}.{name}" if owner is not None else name)
        if _SAFE.search(full) or _PLACEHOLDERS.search(self.text(node)[:300]):
            return TreeValue()
        listed = node.child_by_field_name("arguments")
        arguments = [] if listed is None else list(listed.named_children)
        values = [self.value(one, depth + 1) for one in arguments[:12]]
        if _FORMATTERS.match(full) or full.endswith((".concat", ".join", ".formatted")):
            return self._built(" ".join(one.text for one in values), values)
        if _USER.search(self.text(node)[:300]):
            return TreeValue(varying=True, user=True)
        receiver = node.child_by_field_name("function")
        inner = None
        if (
            receiver is not None
            and receiver.named_children
            and receiver.type in ("member_expression", "selector_expression", "field_expression")
        ):
            inner = self.value(receiver.named_children[0], depth + 1)
        parts = [*values, *([inner] if inner else [])]
        return TreeValue(
            varying=(bool(parts) and any(one.varying for one in parts)) or not parts,
            built=bool(inner and inner.built),
            user=any(one.user for one in parts),
            text=" ".join(one.text for one in parts)[:2000],
        )

    def _member(self, node: "Node", depth: int) -> TreeValue:
        if _USER.search(self.text(node)[:300]):
            return TreeValue(varying=True, user=True)
        base = node.named_children[0] if node.named_children else None
        value = self.value(base, depth + 1) if base is not None else _UNKNOWN
        return TreeValue(varying=True, user=value.user)

    def _variable(self, node: "Node", depth: int) -> TreeValue:
        return self._named(self.text(node), node, depth)

    def _named(self, name: str, node: "Node", depth: int) -> TreeValue:
        """The value of a variable as it is seen at a node."""
        if depth > _MAX_DEPTH:
            return _UNKNOWN
        scope = self._scope(node)
        known = self._assigned.get(name, [])
        found = [
            right for where, place, right in known if where == scope and place <= node.start_byte
        ]
        if not found and scope != -1 and not self.parameter(name, node):
            enclosing = [
                right for where, place, right in known if where < scope and place < node.start_byte
            ]
            found = enclosing[-1:]
        if not found:
            if name.isupper():
                return TreeValue()
            parameter = self.parameter(name, node)
            return TreeValue(varying=True, user=bool(_USER_PARAMETER.search(parameter)))
        values = [
            self.value(one, depth + 3)
            for one in found[-3:]
            if not one.start_byte <= node.start_byte < one.end_byte
        ]
        if not values:
            return _UNKNOWN
        return TreeValue(
            any(one.varying for one in values),
            any(one.built for one in values),
            any(one.user for one in values),
            " ".join(one.text for one in values)[:2000],
        )


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
