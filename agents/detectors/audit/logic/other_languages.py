"""Mistakes of logic in JavaScript, TypeScript, Go and Rust, from tree-sitter's trees."""

import itertools
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from agents.api.finding import Finding
from agents.detectors.audit.python_module import is_test_path
from agents.detectors.audit.syntax_nodes import ancestors, line_of, node_text, walk
from agents.detectors.rule_file import RuleEntry, RuleFile
from agents.workspace.source_file import SourceFile

if TYPE_CHECKING:
    from tree_sitter import Node

RULES = RuleFile(__file__, "other_languages", entry=RuleEntry)

LANGUAGES = ("javascript", "typescript", "tsx", "go", "rust", "java", "c")
_SCRIPT = ("javascript", "typescript", "tsx")
_LENGTH = re.compile(r"<=\s*(?:len\()?([\w.]+?)(?:\.length|\.len\(\)|\.size\(\)|\))\s*$")
_ENDS = ("break_statement", "return_statement", "throw_statement", "continue_statement")


def check_other_languages(file: SourceFile) -> Iterator[Finding]:
    """Findings of one file in a language other than Python."""
    if file.tree is None or file.path.endswith((".min.js", ".d.ts")):
        return
    root = file.tree.root_node
    script = file.language in _SCRIPT
    for node in walk(root):
        kind = node.type
        if kind == "binary_expression":
            yield from _binary(file, node, script)
        elif kind in ("if_statement", "if_expression", "while_statement", "do_statement"):
            yield from _condition(file, node)
        elif kind == "for_statement":
            yield from _for(file, node)
        elif kind in ("statement_block", "block", "compound_statement"):
            yield from _unreachable(file, node)
        elif kind == "switch_case":
            yield from _case(file, node)
        elif kind == "catch_clause" and not is_test_path(file.path):
            yield from _catch(file, node)
        elif kind in ("assignment_statement", "short_var_declaration") and file.language == "go":
            yield from _go_blank_error(file, node)
        elif kind == "expression_statement" and file.language == "go":
            yield from _go_dropped(file, node)
        elif kind == "call_expression":
            yield from _call(file, node, script)


def _binary(file: SourceFile, node: "Node", script: bool) -> Iterator[Finding]:
    left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
    operator = node_text(node.child_by_field_name("operator"))
    one, other = node_text(left), node_text(right)
    if script and operator in ("==", "!=") and "null" not in (one, other):
        if not one.startswith("typeof") and "undefined" not in (one, other):
            yield RULES["loose-equality"].at(
                file, line_of(node), f"`{operator}` converts its operands: use `{operator}=`."
            )
    if operator in ("==", "===", "!=", "!==", "<", ">", "<=", ">="):
        if one == other and re.fullmatch(r"[\w.\[\]]+", one) and not one.isdigit():
            if not (script and operator.startswith("!")) and file.language != "rust":
                yield RULES["self-comparison"].at(
                    file, line_of(node), f"{one:.60} is compared with itself."
                )
        if script and "NaN" in (one, other):
            yield RULES["nan-comparison"].at(file, line_of(node))
    if operator == "||":
        pairs = [_unequal(left), _unequal(right)]
        if pairs[0] and pairs[1] and pairs[0][0] == pairs[1][0] and pairs[0][1] != pairs[1][1]:
            yield RULES["wrong-boolean-operator"].at(
                file, line_of(node), f"{pairs[0][0]:.60} always differs from one of them: use `&&`."
            )


def _unequal(node: "Node | None") -> tuple[str, str] | None:
    """Name and literal of `name != literal`."""
    match = re.fullmatch(
        r"([\w.]+)\s*!==?\s*(\"[^\"]*\"|'[^']*'|\d+|[A-Z][\w.:]*)", node_text(node).strip("() ")
    )
    return (match[1], match[2]) if match else None


def _condition(file: SourceFile, node: "Node") -> Iterator[Finding]:
    condition = node.child_by_field_name("condition")
    if condition is None:
        return
    inner = (
        condition.named_children[0]
        if condition.type == "parenthesized_expression" and condition.named_children
        else condition
    )
    if inner.type == "assignment_expression" and not node.type.startswith(("while", "do")):
        yield RULES["assignment-in-condition"].at(file, line_of(node))
    if inner.type in ("true", "false", "boolean_literal") and node.type.startswith("if"):
        yield RULES["constant-test"].at(
            file, line_of(node), f"This condition is always {node_text(inner)}."
        )
    parent = node.parent
    if node.type.startswith("if") and not (
        parent is not None and parent.type in ("else_clause", "if_statement")
    ):
        yield from _chain(file, node)


def _chain(file: SourceFile, node: "Node") -> Iterator[Finding]:
    seen: set[str] = set()
    current: Node | None = node
    while current is not None:
        text = node_text(current.child_by_field_name("condition"))
        if text in seen and "(" not in text.strip("()"):
            yield RULES["duplicate-condition"].at(file, line_of(current))
        seen.add(text)
        alternative = current.child_by_field_name("alternative")
        if alternative is not None and alternative.type == "else_clause":
            alternative = next((c for c in alternative.named_children), None)
        current = (
            alternative if alternative is not None and alternative.type.startswith("if") else None
        )


def _for(file: SourceFile, node: "Node") -> Iterator[Finding]:
    head = node_text(node).split("{", 1)[0]
    clause = next((part for part in head.split(";")[1:2]), "")
    match = _LENGTH.search(clause.strip())
    index = re.match(r"\s*(\w+)\s*<=", clause)
    if match and index and f"{match[1]}[{index[1]}]" in node_text(node):
        yield RULES["off-by-one"].at(
            file, line_of(node), f"The last pass reads one past the end of {match[1]:.60}: use `<`."
        )


def _unreachable(file: SourceFile, node: "Node") -> Iterator[Finding]:
    children = [
        child
        for child in node.named_children
        if child.type not in ("comment", "line_comment", "block_comment")
    ]
    if len(children) == 1 and children[0].type == "statement_list":
        children = [child for child in children[0].named_children if child.type != "comment"]
    for child, following in itertools.pairwise(children):
        if child.type in _ENDS and following.type not in (
            "function_declaration", "labeled_statement", "class_declaration", "empty_statement",
        ):  # fmt: skip
            yield RULES["unreachable-code"].at(file, line_of(following))
            return


def _case(file: SourceFile, node: "Node") -> Iterator[Finding]:
    """A JavaScript case with statements whose last one does not leave it."""
    following = node.next_named_sibling
    while following is not None and following.type == "comment":
        if re.search(r"fall", node_text(following), re.IGNORECASE):
            return
        following = following.next_named_sibling
    body = [c for c in node.children_by_field_name("body") if c.type != "comment"]
    if following is None or not body:
        return
    if re.search(r"//.*fall|/\*.*fall", node_text(node), re.IGNORECASE):
        return
    last = body[-1]
    if last.type == "statement_block" and last.named_children:
        last = last.named_children[-1]
    if last.type in _ENDS or re.search(r"process\.exit|throw |return\b", node_text(last)):
        return
    yield RULES["missing-break"].at(file, line_of(node))


def _catch(file: SourceFile, node: "Node") -> Iterator[Finding]:
    body = node.child_by_field_name("body")
    if body is not None and not body.named_children:
        yield RULES["swallowed-exception"].at(file, line_of(node))


def _go_blank_error(file: SourceFile, node: "Node") -> Iterator[Finding]:
    left = node_text(node.child_by_field_name("left"))
    right = node.child_by_field_name("right")
    names = [name.strip() for name in left.split(",")]
    if right is None or is_test_path(file.path) or names[-1] != "_":
        return
    called = next(walk(right, "call_expression"), None)
    if called is None or right.named_child_count != 1 or right.named_children[0].id != called.id:
        return
    yield RULES["ignored-error"].at(
        file, line_of(node),
        confidence=0.8,
    )  # fmt: skip


_GO_ERRORS = re.compile(
    r"^(?:json\.(?:Unmarshal|NewDecoder)|os\.(?:Remove\w*|Mkdir\w*|Rename|Chdir|Chmod|Setenv|WriteFile)"
    r"|io\.(?:Copy|WriteString)|http\.ListenAndServe\w*|binary\.(?:Read|Write)|yaml\.Unmarshal"
    r"|(?:db|tx|conn|rows|stmt)\.(?:Exec|ExecContext|Commit|Scan|Ping))\b"
)


def _go_dropped(file: SourceFile, node: "Node") -> Iterator[Finding]:
    if _GO_ERRORS.match(node_text(node)) and not is_test_path(file.path):
        yield RULES["ignored-error"].at(
            file, line_of(node), "The returned error is dropped: check it."
        )


def _call(file: SourceFile, node: "Node", script: bool) -> Iterator[Finding]:
    function = node.child_by_field_name("function")
    name = node_text(function).rsplit(".", 1)[-1]
    if script and name == "forEach":
        arguments = node_text(node.child_by_field_name("arguments"))
        if arguments.startswith("(async"):
            yield RULES["async-foreach"].at(
                file,
                line_of(node),
            )
    elif file.language == "rust" and name == "unwrap" and not is_test_path(file.path):
        if not any(
            "#[test]" in node_text(a)[:200] or "mod tests" in node_text(a)[:40]
            for a in ancestors(node)
            if a.type in ("function_item", "mod_item")
        ):
            yield RULES["unwrap"].at(file, line_of(node))
