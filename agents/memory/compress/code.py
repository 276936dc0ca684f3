"""Source code to signatures: every definition's head, by tree-sitter, with its line."""

from typing import TYPE_CHECKING

from agents.workspace.source_file import SourceFile

if TYPE_CHECKING:
    from tree_sitter import Node

MAX_HEAD_CHARS = 300
_DEFINITIONS = frozenset(
    {
        "function_definition",
        "class_definition",
        "function_declaration",
        "method_definition",
        "class_declaration",
        "abstract_class_declaration",
        "interface_declaration",
        "type_alias_declaration",
        "function_item",
        "function_signature_item",
        "impl_item",
        "struct_item",
        "enum_item",
        "trait_item",
        "mod_item",
        "method_declaration",
        "constructor_declaration",
        "enum_declaration",
        "record_declaration",
        "type_declaration",
        "struct_specifier",
    }
)
"""Node types of the grammars for Python, JavaScript, TypeScript, Rust, Go, Java and C."""


def code_signatures(path: str, text: str) -> str | None:
    """The heads of all definitions, indented by nesting, or None where there are none.

    Args:
        path: its name decides the language.
        text: the source.
    """
    file = SourceFile(path, text.encode("utf-8", "replace"))
    tree = file.tree
    if tree is None:
        return None
    source = file.text.encode("utf-8", "replace")
    heads: list[str] = []
    stack: list[tuple[Node, int]] = [
        (tree.root_node, 0)
    ]  # no recursion: input may be nested deeply
    while stack:
        node, depth = stack.pop()
        if node.type in _DEFINITIONS:
            heads.append(
                f"{node.start_point.row + 1}: {'  ' * min(depth, 20)}{_head(node, source)}"
            )
            depth += 1
        stack.extend((child, depth) for child in reversed(node.children))
    return "\n".join(heads) or None


def _head(node: "Node", source: bytes) -> str:
    body = node.child_by_field_name("body")
    end = node.end_byte if body is None else body.start_byte
    head = " ".join(source[node.start_byte : end].decode("utf-8", "replace").split())
    return head[:MAX_HEAD_CHARS].rstrip(" {:")
