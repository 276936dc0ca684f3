"""`TreeEvaluator`: what names, members and calls mean in the languages that tree-sitter parses.

A name means what its last assignments before the place where it is read say, in the function around it, then
in the text before. Every call passes on the data of its arguments unless its name says that it cleans.
"""

import ast
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from agents.detectors.security.taint.data_flow import data_flow
from agents.detectors.security.taint.evaluate import Evaluator
from agents.detectors.security.taint.value import (
    CONSTANT,
    HOLE,
    Origin,
    Trust,
    Value,
    concat,
    join,
    opaque,
)

if TYPE_CHECKING:
    from tree_sitter import Node

    from agents.detectors.security.tree_code import TreeCode

STRINGS = frozenset([
    "string", "string_literal", "interpreted_string_literal", "raw_string_literal", "raw_string", "text_block",
    "char_literal",
])  # fmt: skip
_OTHER_LITERALS = frozenset([
    "number", "true", "false", "null", "undefined", "int_literal", "float_literal", "integer_literal",
    "boolean_literal", "nil", "none", "rune_literal", "decimal_integer_literal", "hex_integer_literal", "regex",
    "null_literal",
])  # fmt: skip
_NAMES = frozenset(["identifier", "shorthand_property_identifier", "type_identifier"])
_MEMBERS = frozenset([
    "member_expression", "subscript_expression", "selector_expression", "field_expression", "index_expression",
    "field_access", "array_access",
])  # fmt: skip
_CONTAINERS = frozenset([
    "array", "array_expression", "object", "composite_literal", "literal_value", "tuple_expression",
])  # fmt: skip
_ALTERNATIVES = frozenset(["||", "??", "&&"])
_COMPARISONS = frozenset(["==", "!=", "===", "!==", "<", "<=", ">", ">="])
CALLS = {
    "call_expression": ("function", "arguments"),
    "new_expression": ("constructor", "arguments"),
    "method_invocation": ("name", "arguments"),
    "object_creation_expression": ("type", "arguments"),
    "macro_invocation": ("macro", ""),
}
"""Types of nodes that are calls, with the fields of what is called and of its arguments."""
_FORMAT = re.compile(r"%[-+# 0-9.]*[a-zA-Z]|\{\}")
_MAX_READ = 300
"""Characters of an expression in which data of a client is looked for."""


class TreeExpression(ast.expr):
    """An expression of another language, not looked into yet."""

    def __init__(self, node: "Node") -> None:
        super().__init__()
        self.node = node


class TreeEvaluator(Evaluator):
    """Values of the expressions of one file."""

    max_depth = 24

    def __init__(self, code: "TreeCode") -> None:
        super().__init__()
        self._code = code
        self._flow = data_flow().others

    def value(self, node: "Node | None") -> Value:
        """The value of a node; unknown for None."""
        return opaque("") if node is None else self(TreeExpression(node))

    def _expression(self, expression: TreeExpression) -> Value:
        node = expression.node
        kind = node.type
        if kind in _NAMES:
            return self._variable(self._code.text(node), node)
        if kind in _MEMBERS:
            return self._member(node)
        if kind == "macro_invocation":
            return self._macro(node)
        if kind in CALLS:
            return self._call(node)
        return self(self._in_python(node))

    def _in_python(self, node: "Node") -> ast.expr:
        """The expression of the same form in Python; what it is made of is left as it is."""
        kind, text = node.type, self._code.text(node)
        children = [one for one in node.named_children if one.type != "comment"]
        parts: list[ast.expr] = [TreeExpression(one) for one in children[:30]]
        if kind in STRINGS:
            return ast.Constant(text.lstrip("rb#").strip("#").strip("\"'`"))
        if kind in _OTHER_LITERALS:
            return ast.Constant(None)
        if kind == "template_string":
            return self._template(node)
        if kind in ("binary_expression", "augmented_assignment_expression") and len(parts) == 2:
            operator = self._code.text(node.child_by_field_name("operator"))
            if operator in _ALTERNATIVES:
                return ast.BoolOp(ast.Or(), parts)
            if operator in _COMPARISONS:
                return ast.Compare(parts[0], [ast.Eq()], parts[1:])
            plus = operator in ("+", "+=")
            return ast.BinOp(parts[0], ast.Add() if plus else ast.Sub(), parts[1])
        if kind == "ternary_expression" and len(parts) == 3:
            return ast.IfExp(*parts)
        if kind in ("pair", "keyed_element") and parts:
            return parts[-1]
        if kind in _CONTAINERS:
            return ast.List(parts, ast.Load())
        inner: list[ast.expr] = [
            TreeExpression(one) for one in children[:12] if one.type != "type_identifier"
        ]
        return ast.BoolOp(ast.Or(), inner) if inner else ast.expr()

    def _template(self, node: "Node") -> ast.expr:
        """Constant text and substitutions in turn, as in an f-string."""
        data, parts = self._code.data, list[ast.expr]()
        at = node.start_byte + 1
        for hole in node.named_children:
            if hole.type == "template_substitution":
                parts.append(ast.Constant(data[at : hole.start_byte].decode("utf-8", "replace")))
                parts += [
                    ast.FormattedValue(TreeExpression(one), -1) for one in hole.named_children[:1]
                ]
                at = hole.end_byte
        parts.append(ast.Constant(data[at : node.end_byte - 1].decode("utf-8", "replace")))
        return ast.JoinedStr(parts)

    def _macro(self, node: "Node") -> Value:
        """`format!("… {name}", other)` of Rust puts a text together; other macros are unknown."""
        text = self._code.text(node)
        if not re.match(r"(format|concat|format_args)!", text):
            return opaque(text[:40])
        names = re.findall(r"\{([A-Za-z_]\w*)(?::[^{}]*)?\}", text)
        for tree in node.named_children:
            if tree.type == "token_tree":
                names += [
                    self._code.text(one) for one in tree.named_children if one.type == "identifier"
                ]
        values = [self._variable(name, node) for name in names[:20] if name != "self"]
        if self._flow.user.search(text):
            values.append(_user(text))
        return concat(values, text=text)

    def _call(self, node: "Node") -> Value:
        called = node.child_by_field_name(CALLS[node.type][0])
        owner = node.child_by_field_name("object")
        name = self._code.text(called)
        full = re.sub(r"\s+", "", f"{self._code.text(owner)}.{name}" if owner else name)
        text = self._code.text(node)[:_MAX_READ]
        if self._flow.cleaning.search(full) or self._flow.placeholders.search(text):
            return CONSTANT
        listed = node.child_by_field_name("arguments")
        given = [] if listed is None else [self.value(one) for one in listed.named_children[:12]]
        if self._flow.formatters.match(full) or full.endswith((".concat", ".join", ".formatted")):
            merged = concat(given)
            return replace(merged, text=_FORMAT.sub(HOLE, merged.text or ""))
        if self._flow.user.search(text):
            return _user(text)
        if called is not None and called.type in _MEMBERS and called.named_children:
            given.append(self.value(called.named_children[0]))
            merged = join(given)
            return Value(merged.origins, built=given[-1].built, text=merged.text)
        merged = join(given)
        return Value(merged.origins, text=merged.text) if given else opaque(full)

    def _member(self, node: "Node") -> Value:
        text = self._code.text(node)[:_MAX_READ]
        if self._flow.user.search(text):
            return _user(text)
        owner = self.value(node.named_children[0]) if node.named_children else CONSTANT
        return opaque(text) if owner.is_constant else owner.part()

    def _variable(self, name: str, node: "Node") -> Value:
        """The value of a variable as it is seen at a node."""
        assigned = self._code.assigned_before(name, node)
        if not assigned:
            parameter = self._code.parameter(name, node)
            if self._flow.user_parameter.search(parameter):
                return _user(name)
            return CONSTANT if name.isupper() else opaque(name)
        self.depth += 4
        values = [
            self.value(one)
            for one in assigned[-3:]
            if not one.start_byte <= node.start_byte < one.end_byte
        ]
        self.depth -= 4
        if any(self._is_added(one) for one in assigned[-3:]):
            return concat(values)
        return join(values) if values else opaque(name)

    def _is_added(self, right: "Node") -> bool:
        """Whether a value is appended to a variable by `+=`."""
        operator = right.parent.child_by_field_name("operator") if right.parent else None
        return operator is not None and self._code.text(operator) == "+="


TreeEvaluator.forms = {**Evaluator.forms, TreeExpression: TreeEvaluator._expression}


def _user(text: str) -> Value:
    return Value(frozenset([Origin(Trust.USER, text)]))
