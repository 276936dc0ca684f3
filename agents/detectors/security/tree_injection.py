"""The detector `tree_injection`: built strings and clients' data at dangerous calls.

For JavaScript, TypeScript, Go, Rust and Java. Data is followed within one function; see `taint` for Python.
"""

import re
from collections.abc import Iterator

from agents.api.finding import Finding, Severity
from agents.detectors.detector import Detector, DetectorContext, LazyRules
from agents.detectors.rule_file import JAVASCRIPT
from agents.detectors.security.taint.rules import RULES, TreeSinkEntry, advice, check_of, tree_sinks
from agents.detectors.security.taint.sink_check import FIXED_HOST
from agents.detectors.security.taint.value import SinkKind, Trust, Value, opaque
from agents.detectors.security.tree_code import TreeCall, TreeCode, tree_code, tree_files
from agents.detectors.security.tree_shells import shell_calls
from agents.workspace.workspace import Workspace

_Hit = tuple[SinkKind, int, int, Value, str]
_STATEMENT = re.compile(
    r"(?is)\bselect\s.{1,400}\sfrom\s|\binsert\s+into\s|\bupdate\s+\S+\s+set\s|\bdelete\s+from\s"
)
_QUOTED_HOLE = re.compile(r"""'%?(\$\{[^}]*\}|\{\w*\}|%[sv]|"\s*\+|'\s*\+)""")
_BUILDERS = re.compile(r"^(fmt\.Sprintf|String\.format|util\.format|format!)$")


def _detect(workspace: Workspace, context: DetectorContext) -> Iterator[Finding]:
    for file in tree_files(workspace, context):
        code = tree_code(file)
        seen: set[tuple[int, SinkKind]] = set()
        for kind, line, end_line, value, call in _hits(code):
            if (line, kind) not in seen:
                seen.add((line, kind))
                yield _finding(code, kind, line, end_line, value, call)
        if not any(kind is SinkKind.SQL for _, kind in seen):
            yield from _statements(code)


def _finding(
    code: TreeCode, kind: SinkKind, line: int, end_line: int, value: Value, call: str
) -> Finding:
    rule = RULES[kind]
    source = "Data of a client" if value.trust is Trust.USER else "A string that is not constant"
    severity = rule.severity
    if value.trust is not Trust.USER and severity is Severity.CRITICAL:
        severity = Severity.HIGH
    elif value.trust is not Trust.USER and severity.rank > 2:
        severity = Severity.MEDIUM
    return rule.at(
        code.file,
        line,
        f"{source} reaches {call[:80]}. {advice(kind)}",
        end_line=end_line,
        severity=severity,
        confidence=0.9 if value.trust is Trust.USER else 0.6,
    )


def _hits(code: TreeCode) -> Iterator[_Hit]:
    language = code.file.language or ""
    starts_processes = "child_process" in code.file.text
    for call in code.calls:
        for kind, sink in tree_sinks(language):
            if not sink.call.search(call.name):
                continue
            if (
                kind is SinkKind.COMMAND
                and language in JAVASCRIPT
                and (not starts_processes or re.search(r"(?i)(re|regex|pattern)\.exec$", call.name))
            ):
                continue
            for value in _arguments(code, call, sink):
                if _reported(kind, sink, value, code, call) and not _is_checked(kind, code, call):
                    yield kind, call.line, call.end_line, value, call.name
        yield from shell_calls(code, call)
    if language in JAVASCRIPT:
        yield from _assigned_sinks(code)


def _arguments(code: TreeCode, call: TreeCall, sink: TreeSinkEntry) -> list[Value]:
    if sink.report == "always":
        return [opaque("")]
    chosen = (
        call.arguments
        if sink.arguments == "all"
        else [
            call.arguments[position]
            for position in sink.arguments
            if position < len(call.arguments)
        ]
    )
    return [code.value(one) for one in chosen]


def _is_checked(kind: SinkKind, code: TreeCode, call: TreeCall) -> bool:
    """Whether a check of the right kind stands between the start of the function and the end of the call.

    Only whether there is one, not whether it is the right one.
    """
    pattern = check_of(kind)
    if pattern is None:
        return False
    return bool(pattern.search(code.text_of_function(call.node, until=call.node.end_byte)))


def _reported(
    kind: SinkKind, sink: TreeSinkEntry, value: Value, code: TreeCode, call: TreeCall
) -> bool:
    if sink.looks and not re.search(sink.looks, value.text or ""):
        return False
    if sink.needs and not re.search(sink.needs, code.text(call.node)):
        return False
    if sink.in_file and not re.search(sink.in_file, code.file.text):
        return False
    if kind in (SinkKind.REDIRECT, SinkKind.URL) and FIXED_HOST.match(value.text or ""):
        return False
    if sink.report == "user":
        return value.trust is Trust.USER
    if sink.report == "built":
        return value.built
    if sink.report == "always":
        return True
    return not value.is_constant


def _assigned_sinks(code: TreeCode) -> Iterator[_Hit]:
    for node in code.of_type("assignment_expression", "augmented_assignment_expression"):
        left = code.text(node.child_by_field_name("left"))
        if left.endswith((".innerHTML", ".outerHTML", ".srcdoc")):
            value = code.value(node.child_by_field_name("right"))
            if not value.is_constant and not _is_cleaned(
                code.text(node.child_by_field_name("right"))
            ):
                yield SinkKind.HTML, code.line(node), node.end_point[0] + 1, value, left
    for node in code.of_type("pair"):
        key = code.text(node.child_by_field_name("key")).strip("'\"")
        if key in ("$where", "$function", "$accumulator"):
            value = code.value(node.child_by_field_name("value"))
            if value.built or value.trust is Trust.USER:
                yield SinkKind.NOSQL, code.line(node), node.end_point[0] + 1, value, key
    for node in code.of_type("jsx_attribute"):
        text = code.text(node)
        if text.startswith("dangerouslySetInnerHTML") and not _is_cleaned(text):
            value = opaque("")
            yield (
                SinkKind.HTML,
                code.line(node),
                node.end_point[0] + 1,
                value,
                "dangerouslySetInnerHTML",
            )


def _is_cleaned(text: str) -> bool:
    return bool(re.search(r"(?i)sanitiz|purify|escape", text))


def _statements(code: TreeCode) -> Iterator[Finding]:
    """SQL text with quoted values put in, in a file that passes it to no database call: a function that builds it."""
    nodes = [*code.of_type("binary_expression"), *code.of_type("template_string")]
    nodes += [call.node for call in code.calls if _BUILDERS.match(call.name)]
    lines: set[int] = set()
    for node in nodes:
        text = code.text(node)
        if len(text) > 2_000 or not _STATEMENT.search(text) or not _QUOTED_HOLE.search(text):
            continue
        value = code.value(node)
        if value.built and code.line(node) not in lines:
            lines.add(code.line(node))
            yield _finding(
                code,
                SinkKind.SQL,
                code.line(node),
                node.end_point[0] + 1,
                value,
                "an SQL statement",
            )


TREE_INJECTION = Detector(
    name="tree_injection",
    description="Finds injections in JavaScript, TypeScript, Go, Rust and Java, following data within a function.",
    detect=_detect,
    rules=LazyRules(lambda: (entry.rule for entry in RULES.entries.values() if entry.others)),
)
