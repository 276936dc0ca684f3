"""Elements, divisors and results taken for granted in Go, Rust, JavaScript, TypeScript and Java."""

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

RULES = RuleFile(__file__, "unchecked_access", entry=RuleEntry)
LANGUAGES = ("go", "rust", "java", "javascript", "typescript", "tsx")

_FUNCTIONS = frozenset(
    ["function_declaration", "method_declaration", "function_item", "func_literal", "closure_expression",
     "method_definition", "arrow_function", "function_expression"]
)  # fmt: skip
_SPLITS = {
    "go": r"strings\.(?:Fields|Split|SplitN|SplitAfter)\(",
    "java": r"\.split\(",
    "rust": r"\.(?:split|split_whitespace|splitn|lines|chars|bytes)\(.*collect",
}
_IO = re.compile(
    r"(fs::\w+|File::(open|create)|read_to_string|read_line|TcpStream::connect|TcpListener::bind|env::var|Command::new|"
    r"\.parse(::<[^>]*>)?\(\)|from_str|serde_json::\w+|toml::from_str|reqwest::\w+|\.send\(\)|\.recv\(\)|from_utf8)"
)


def check_access(file: SourceFile) -> Iterator[Finding]:
    """Findings of one file."""
    if file.tree is None or is_test_path(file.path):
        return
    for function in walk(file.tree.root_node, *_FUNCTIONS):
        body = node_text(function)
        if len(body) > 40_000 or (file.language == "rust" and _is_rust_test(function, file)):
            continue
        if file.language in _SPLITS:
            yield from _split_parts(file, function, body)
        if file.language in ("go", "rust", "java"):
            yield from _divisions(file, function, body)
        if file.language == "rust":
            yield from _rust_indexes(file, function, body)
            yield from _rust_unwraps(file, function, body)


def _is_rust_test(function: "Node", file: SourceFile) -> bool:
    if any(
        one.type == "mod_item" and re.search(r"\bmod\s+\w*tests?\b", node_text(one)[:60])
        for one in ancestors(function)
    ):
        return True
    above = "\n".join(file.lines[max(0, line_of(function) - 4) : line_of(function) - 1])
    return "#[test]" in above or "#[tokio::test]" in above or "#[cfg(test)]" in above


def _own(node: "Node", function: "Node") -> bool:
    """Whether the innermost function around a node is this one."""
    return next((one.id for one in ancestors(node) if one.type in _FUNCTIONS), None) == function.id


def _measured(body: str, name: str) -> bool:
    """Whether a function looks at how long a value is, or whether it is empty."""
    plain = re.escape(name)
    return bool(
        re.search(
            rf"\blen\({plain}\)|\b{plain}\.(len|length|size|is_empty|isEmpty|get|first|last)\b|cap\({plain}\)",
            body,
        )
        or re.search(rf"range\s+{plain}\b|in\s+&?{plain}\b", body)
        or re.search(rf"\b(match|switch)\s+{plain}\b|if\s+let\s+.*=\s*&?{plain}\b|let\s+\[", body)
    )


def _split_parts(file: SourceFile, function: "Node", body: str) -> Iterator[Finding]:
    """`parts := strings.Fields(name); parts[1]` without a look at `len(parts)`."""
    pattern = _SPLITS[file.language or ""]
    names = set(
        re.findall(
            rf"(?:let\s+(?:mut\s+)?|String\[\]\s+|var\s+)?\b(\w+)(?::\s*[^=\n]+)?\s*(?::=|=)\s*[^;\n]*{pattern}",
            body,
        )
    )
    for name in names:
        if _measured(body, name):
            continue
        for node in walk(function, "index_expression", "array_access"):
            match = re.fullmatch(rf"{re.escape(name)}\[(\d+)\]", node_text(node))
            first = 0 if file.language == "go" and "Fields" in body else 1
            if match and int(match[1]) >= first and _own(node, function):
                yield RULES["split-index"].at(
                    file,
                    line_of(node),
                    f"A shorter text has no part {int(match[1]) + 1}: check the number of parts.",
                    confidence=0.75,
                )
                break


def _divisions(file: SourceFile, function: "Node", body: str) -> Iterator[Finding]:
    """Integer division by a parameter that the function never compares: it panics or throws for zero."""
    integers = _integer_parameters(file.language or "", body)
    for node in walk(function, "binary_expression"):
        if node_text(node.child_by_field_name("operator")) not in ("/", "%") or not _own(
            node, function
        ):
            continue
        right = node_text(node.child_by_field_name("right")).strip("()")
        compared = rf"\b{re.escape(right)}\b\s*(==|!=|<=?|>=?)|(==|!=|<=?|>=?)\s*{re.escape(right)}\b|max\([^)]*\b{re.escape(right)}\b|\b{re.escape(right)}\.max\(|match\s+{re.escape(right)}\b|(require|check|ensure|assert|debug_assert)\w*!?\([^;]*\b{re.escape(right)}\b"
        if right in integers and not re.search(compared, body):
            yield RULES["unguarded-division"].at(
                file,
                line_of(node),
                f"{right} may be zero, and integers cannot be divided by zero: check it.",
                confidence=0.65,
            )
            return


def _integer_parameters(language: str, body: str) -> set[str]:
    head = body.split("{", 1)[0]
    if language == "go":
        found: set[str] = set()
        for names in re.findall(r"((?:\w+\s*,\s*)*\w+)\s+u?int(?:8|16|32|64)?\b", head):
            found |= {one.strip() for one in names.split(",")}
        return found
    if language == "rust":
        return set(re.findall(r"(\w+):\s*[iu](?:8|16|32|64|128|size)\b", head))
    return set(re.findall(r"\b(?:int|long|short|byte)\s+(\w+)", head))


def _rust_indexes(file: SourceFile, function: "Node", body: str) -> Iterator[Finding]:
    """`header[4]` of a slice parameter whose length nobody looked at."""
    head = body.split("{", 1)[0]
    slices = set(re.findall(r"(\w+):\s*&(?:'\w+\s+)?(?:mut\s+)?(?:\[[^;\]]+\]|Vec<|str\b)", head))
    reported: set[str] = set()
    for node in walk(function, "index_expression"):
        match = re.fullmatch(r"&?(\w+)\[(\d+)\]", node_text(node))
        if (
            match
            and match[1] in slices - reported
            and not _measured(body, match[1])
            and _own(node, function)
        ):
            reported.add(match[1])
            yield RULES["unchecked-index"].at(
                file,
                line_of(node),
                f"{match[1]} with at most {match[2]} elements panics: use get({match[2]}).",
                confidence=0.75,
            )


def _rust_unwraps(file: SourceFile, function: "Node", body: str) -> Iterator[Finding]:
    """`fs::read_to_string(path).unwrap()` outside of `main` and build scripts."""
    name = node_text(function.child_by_field_name("name"))
    if (
        name in ("main", "")
        or file.path.endswith(("build.rs", "main.rs"))
        or "/examples/" in f"/{file.path}"
    ):
        return
    for node in walk(function, "call_expression"):
        called = node_text(node.child_by_field_name("function"))
        if called.endswith((".unwrap", ".expect")) and _IO.search(called) and _own(node, function):
            yield RULES["unhandled-error"].at(
                file,
                line_of(node),
                confidence=0.7,
            )
