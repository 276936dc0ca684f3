"""Conversions in Go and Rust that drop bits, and divisions and indexes without a check in JavaScript and Go."""

import re
from collections.abc import Iterator

from agents.api.finding import Finding, Severity
from agents.detectors.audit.python_module import is_test_path
from agents.detectors.audit.syntax_nodes import ancestors, line_of, node_text, walk
from agents.detectors.detector import Rule
from agents.workspace.source_file import SourceFile

NARROWING = Rule("narrowing-conversion", Severity.MEDIUM, "integer conversion that drops bits", 197)
EMPTY_INDEX = Rule("empty-index", Severity.MEDIUM, "element of what may be empty", 129)
DIVISION = Rule("unguarded-division", Severity.MEDIUM, "division by what may be zero", 369)
UNCHECKED_PARSE = Rule("unchecked-conversion", Severity.MEDIUM, "JSON.parse without a handler", 20)
RULES = (NARROWING, EMPTY_INDEX, DIVISION, UNCHECKED_PARSE)
LANGUAGES = ("javascript", "typescript", "tsx", "go", "rust")

_NARROW = ("int8", "int16", "int32", "uint8", "uint16", "uint32", "byte")
_FUNCTIONS = frozenset([
    "function_declaration", "method_declaration", "function_item", "method_definition", "arrow_function",
    "function_expression", "func_literal",
])  # fmt: skip
_DIVISOR = re.compile(
    r"^(?:float64\(|f64::from\(|int\()?(?:len\((\w+)\)\)?|(\w+)\.(?:length|len\(\)|size)(?: as \w+)?\)?)$"
)


def check_casts(file: SourceFile) -> Iterator[Finding]:
    """Findings of one Go, Rust or script file."""
    if file.tree is None or is_test_path(file.path) or file.path.endswith((".min.js", ".d.ts")):
        return
    for node in walk(
        file.tree.root_node,
        "call_expression",
        "type_cast_expression",
        "binary_expression",
        "index_expression",
        "subscript_expression",
        "type_conversion_expression",
    ):
        if any(one.type in ("macro_invocation", "mod_item") for one in ancestors(node)):
            continue
        text = node_text(node)
        body = next((node_text(a) for a in ancestors(node) if a.type in _FUNCTIONS), "")
        if node.type == "call_expression":
            name = node_text(node.child_by_field_name("function"))
            if file.language == "go" and name in _NARROW:
                argument = node_text(node.child_by_field_name("arguments")).strip("()")
                if (
                    re.match(
                        r"^(?:len\(|\w*(?:size|Size|count|Count|total|Total|length|Length|n|num)\w*$)",
                        argument,
                    )
                    and "math.Max" not in body
                ):
                    yield NARROWING.at(
                        file,
                        line_of(node),
                        f"{text:.60} drops high bits without a check.",
                        confidence=0.7,
                    )
            elif name == "JSON.parse" and file.language != "go":
                if (
                    not any(a.type == "try_statement" for a in ancestors(node))
                    and "stringify" not in text
                ):
                    if ".catch(" not in body:
                        yield UNCHECKED_PARSE.at(
                            file,
                            line_of(node),
                            "JSON.parse throws on malformed text: catch it.",
                            confidence=0.6,
                        )
        elif node.type == "type_cast_expression":
            match = re.search(
                r"(\w*(?:len\(\)|size|count|total|length)\w*(?:\(\))?) as (u8|u16|i8|i16|u32|i32)$",
                text,
            )
            if match and "try_from" not in body:
                yield NARROWING.at(
                    file,
                    line_of(node),
                    f"{text:.60} drops high bits: use try_from.",
                    confidence=0.7,
                )
        elif node.type == "binary_expression":
            if node_text(node.child_by_field_name("operator")) != "/":
                continue
            divisor = (
                node_text(node.child_by_field_name("right")).strip("()")
                if file.language == "rust"
                else node_text(node.child_by_field_name("right"))
            )
            match = _DIVISOR.match(divisor)
            name = (match[1] or match[2]) if match else ""
            if name and not _is_checked(body, name):
                yield DIVISION.at(
                    file,
                    line_of(node),
                    f"{name} may be empty: the division gives NaN or fails.",
                    confidence=0.75,
                )
        elif file.language == "go" and re.fullmatch(r"(\w+)\[(0|len\(\1\)\s*-\s*1)\]", text):
            name = text.split("[", 1)[0]
            if re.search(rf"\b{name}\s+\[\]", body.split("{", 1)[0]) and not _is_checked(
                body, name
            ):
                yield EMPTY_INDEX.at(
                    file, line_of(node), f"{name} may be empty: the index panics.", confidence=0.7
                )


def _is_checked(body: str, name: str) -> bool:
    """Whether a function tests the length of a value anywhere before it ends."""
    length = rf"(?:len\({name}\)|{name}\??\.(?:length|len\(\)|is_empty\(\)|size))"
    return bool(
        re.search(rf"{length}\s*(?:[=!<>]=?=?)", body)
        or re.search(rf"(?:if|while|\?|&&|\|\|)\s*\(?!?\s*{length}", body)
        or re.search(rf"{length}\s*(?:\?|\|\||&&)", body)
        or re.search(rf"(?:if|while)\s*\(?!?{name}\s*[).&|]", body)
    )
