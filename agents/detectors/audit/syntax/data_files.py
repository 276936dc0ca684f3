"""JSON, YAML, TOML and XML files: syntax errors with their exact line, and keys given twice."""

import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from xml.parsers import expat

import yaml

from agents.api.finding import Finding
from agents.detectors.audit.syntax.rules import DUPLICATE_KEY, SYNTAX_ERROR
from agents.workspace.source_file import SourceFile

_LINE = re.compile(r"at line (\d+)")
_TEMPLATE = re.compile(r"\{\{.*?\}\}|\{%.*?%\}|<%.*?%>|\$\{\{")
_COMMENTED_JSON = re.compile(
    r"(^|/)(tsconfig[^/]*|jsconfig[^/]*|\.eslintrc|\.babelrc|devcontainer|api-extractor)\.json$"
    r"|(^|/)(\.vscode|\.zed|\.devcontainer)/[^/]*\.json$|\.(jsonc|json5|code-workspace)$"
)


def check_data(file: SourceFile) -> Iterator[Finding]:
    """Findings of one data file. Templates of such files, such as Helm's, are not checked."""
    if file.text.strip():
        yield from _CHECKS[file.language or ""](file)


def _error(file: SourceFile, line: int, reason: str) -> Finding:
    line = min(max(1, line), len(file.lines))
    return SYNTAX_ERROR.at(file, line, f"The file does not parse: {reason}.", confidence=1.0)


def _check_json(file: SourceFile) -> Iterator[Finding]:
    text = file.text
    if _COMMENTED_JSON.search(file.path):
        text = without_json_comments(text)
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        if not (_is_json_lines(text) or _TEMPLATE.search(text)):
            yield _error(file, error.lineno, f"{error.msg} at column {error.colno}")
        return
    except (ValueError, RecursionError):  # a number of thousands of digits; nesting
        return
    yield from _duplicate_json_keys(file)


def _is_json_lines(text: str) -> bool:
    lines = [line for line in text.split("\n") if line.strip()]
    try:
        return len(lines) > 1 and all(isinstance(json.loads(line), dict | list) for line in lines)
    except (ValueError, RecursionError):
        return False


def without_json_comments(text: str) -> str:
    """JSON with comments and trailing commas replaced by blanks; offsets and lines stay."""
    pieces = re.compile(r'"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?\*/|,(?=\s*[}\]])', re.DOTALL)

    def blank(match: re.Match[str]) -> str:
        piece = match[0]
        return piece if piece.startswith('"') else re.sub(r"[^\n]", " ", piece)

    return pieces.sub(blank, text)


def _duplicate_json_keys(file: SourceFile) -> Iterator[Finding]:
    from agents.detectors.audit.syntax_nodes import line_of, node_text, walk

    if file.tree is None:
        return
    for table in walk(file.tree.root_node, "object"):
        seen: dict[str, int] = {}
        for pair in table.named_children:
            if pair.type != "pair":
                continue
            key = node_text(pair.child_by_field_name("key"))
            line = line_of(pair)
            if key in seen:
                yield _duplicate(file, line, key.strip('"'), seen[key])
            seen[key] = line


def _duplicate(file: SourceFile, line: int, key: str, earlier: int) -> Finding:
    return DUPLICATE_KEY.at(
        file, line, f"The key {key!r:.60} is given on line {earlier} already: remove one of them."
    )


def _check_yaml(file: SourceFile) -> Iterator[Finding]:
    try:
        documents = list(yaml.compose_all(file.text, Loader=yaml.CSafeLoader))
    except yaml.MarkedYAMLError as error:
        if not _TEMPLATE.search(file.text):
            mark = error.problem_mark or error.context_mark
            reason = error.problem or error.context or "invalid YAML"
            yield _error(file, mark.line + 1 if mark else 1, reason)
        return
    except yaml.YAMLError as error:
        yield _error(file, 1, " ".join(str(error).split())[:200])
        return
    except (ValueError, RecursionError):
        return
    stack: list[Any] = [node for node in documents if node is not None]
    visited: set[int] = set()
    while stack:
        node = stack.pop()
        if id(node) in visited:
            continue
        visited.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            stack.extend(node.value)
        elif isinstance(node, yaml.MappingNode):
            seen: dict[str, int] = {}
            for key, value in node.value:
                stack += [key, value]
                if isinstance(key, yaml.ScalarNode) and key.value != "<<":
                    line = key.start_mark.line + 1
                    if key.value in seen:
                        yield _duplicate(file, line, key.value, seen[key.value])
                    seen[key.value] = line


def _check_toml(file: SourceFile) -> Iterator[Finding]:
    try:
        tomllib.loads(file.text)
    except tomllib.TOMLDecodeError as error:
        if _TEMPLATE.search(file.text):
            return
        match = _LINE.search(str(error))
        line = int(match[1]) if match else len(file.text.rstrip("\n").split("\n"))
        yield _error(file, line, re.sub(r" \(at .*", "", str(error)))
    except (ValueError, RecursionError):
        return


def _check_xml(file: SourceFile) -> Iterator[Finding]:
    # expat alone loads no external entity; one without handlers expands nothing that is kept.
    parser = expat.ParserCreate()
    try:
        parser.Parse(file.text.encode("utf-8", "replace"), True)
    except expat.ExpatError as error:
        if not _TEMPLATE.search(file.text):
            yield _error(file, error.lineno, expat.ErrorString(error.code) or "invalid XML")


_CHECKS: Mapping[str, Callable[[SourceFile], Iterator[Finding]]] = {
    "json": _check_json,
    "yaml": _check_yaml,
    "toml": _check_toml,
    "xml": _check_xml,
}
