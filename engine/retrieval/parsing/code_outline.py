"""`code_outline`: the definitions of source code, by its tree-sitter grammar.

Each named class, function and type begins a section; what stands directly before it and belongs to it
(comments, decorators, attributes) does, too.
"""

from typing import TYPE_CHECKING

from engine.retrieval.parsing.byte_offsets import ByteOffsets
from engine.retrieval.parsing.grammars import has_grammar, parser_of
from engine.retrieval.parsing.outline import MAX_TITLE, Outline, TextHeading

if TYPE_CHECKING:
    from tree_sitter import Node

_DEFINITIONS = frozenset([
    "function_definition", "class_definition", "decorated_definition", "function_declaration",
    "class_declaration", "generator_function_declaration", "abstract_class_declaration",
    "interface_declaration", "enum_declaration", "type_alias_declaration", "method_definition",
    "method_declaration", "constructor_declaration", "record_declaration",
    "annotation_type_declaration", "type_declaration", "function_item", "struct_item", "enum_item",
    "union_item", "trait_item", "impl_item", "mod_item", "macro_definition", "type_item",
    "struct_specifier", "enum_specifier", "union_specifier", "type_definition", "internal_module",
    "module", "table", "table_array_element",
])  # fmt: skip
_ATTACHED = frozenset(
    ("comment", "line_comment", "block_comment", "attribute_item", "decorator", "annotation")
)
_BODIES = frozenset([
    "block", "class_body", "declaration_list", "interface_body", "enum_body",
    "enum_body_declarations", "declaration", "export_statement", "statement_block",
    "decorated_definition", "program", "namespace_definition",
])  # fmt: skip
_ENTRIES = frozenset(("pair", "block_mapping_pair", "rule_set"))
_COLLECTIONS = frozenset(
    ("object", "array", "block_node", "block_mapping", "block_sequence", "document")
)
_MAX_ENTRY_LEVEL = 3
_MAX_LEVEL = 6


def has_outline(language: str | None) -> bool:
    """Whether the language has definitions or entries and a grammar."""
    return language != "html" and has_grammar(language)


def code_outline(text: str, language: str) -> Outline:
    """Definitions as headings; statements of the outermost level, and entries of data, as breaks.

    Raises:
        KeyError: there is no grammar for the language.
    """
    data = text.encode()
    finder = _Finder(data)
    finder.look_through(parser_of(language).parse(data).root_node)
    offsets = ByteOffsets(text)
    headings = tuple(
        TextHeading(level, name, offsets.character(start))
        for start, name, level in sorted(finder.definitions)
        if name
    )
    return Outline(headings, tuple(offsets.character(one) for one in sorted(finder.breaks)))


class _Finder:
    """Walks the tree down to the insides of definitions. Offsets are bytes of the UTF-8."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.definitions: list[tuple[int, str, int]] = []  # offset, name, level
        self.breaks: set[int] = set()

    def look_through(self, root: "Node") -> None:
        """Collect what is in a tree; not recursive, because a hostile file is nested too deep for that."""
        stack = [(root, 0)]
        while stack:
            node, level = stack.pop()
            attached: int | None = None
            for child in node.named_children:
                start = child.start_byte if attached is None else attached
                attached = start if child.type in _ATTACHED else None
                if attached is None:
                    stack += self._visit(node, child, start, level)

    def _visit(
        self, parent: "Node", node: "Node", start: int, level: int
    ) -> "list[tuple[Node, int]]":
        """Record a node; what to look through next, with its level."""
        definition = _definition(node)
        if definition is not None and level < _MAX_LEVEL:
            self.definitions.append((self._line(start), self._name(definition), level + 1))
            body = definition.child_by_field_name("body")
            return [] if body is None else [(body, level + 1)]
        kind = node.type
        entry = kind in _ENTRIES
        if entry or level == 0 or parent.type == "array":
            self.breaks.add(self._line(start))
            if parent.type == "array":
                return []
        if kind in _BODIES:
            return [(node, level)]
        if (entry or kind in _COLLECTIONS) and level < _MAX_ENTRY_LEVEL:
            return [(node, level + entry)]
        return []

    def _line(self, start: int) -> int:
        """The beginning of the line if only white space precedes."""
        line = self._data.rfind(b"\n", 0, start) + 1
        return line if not self._data[line:start].strip() else start

    def _name(self, definition: "Node") -> str:
        for field in ("name", "declarator", "type", "left"):
            found = definition.child_by_field_name(field)
            while found is not None and found.child_by_field_name("declarator") is not None:
                found = found.child_by_field_name("declarator")
            if found is not None:
                return self._text(found)
        named = [one for one in definition.named_children if one.type not in _ATTACHED]
        first = named[0] if named else None
        if first is not None and first.type == "type_spec":  # of Go
            return self._name(first)
        return self._text(first) if first is not None else ""

    def _text(self, node: "Node") -> str:
        end = min(node.end_byte, node.start_byte + 4 * MAX_TITLE)
        text = self._data[node.start_byte : end].decode("utf-8", "ignore")
        return text.partition("\n")[0][:MAX_TITLE].strip()


def _definition(node: "Node") -> "Node | None":
    """The definition that a node is or wraps (decorators, `export`)."""
    if node.type in ("decorated_definition", "export_statement"):
        for field in ("definition", "declaration"):
            inner = node.child_by_field_name(field)
            if inner is not None:
                return inner if inner.type in _DEFINITIONS else None
        return None
    return node if node.type in _DEFINITIONS else None
