"""The detector `unsafe_memory`: unchecked memory access in Rust and C.

In Rust a block whose comment states why it is sound (`SAFETY`, or a `# Safety` section) is reported as a
note only: the reader can check the reason.
"""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from agents.api.finding import Finding, Severity
from agents.detectors.audit.python_module import is_test_path
from agents.detectors.audit.syntax_nodes import line_of, node_text, walk
from agents.detectors.detector import Detector, DetectorContext
from agents.detectors.rule_file import RuleFile
from agents.detectors.security.pattern_rules import PatternRule
from agents.workspace.source_file import SourceFile
from agents.workspace.workspace import Workspace

if TYPE_CHECKING:
    from tree_sitter import Node

RULES = RuleFile(__file__, "unsafe_memory", entry=PatternRule)

_SAFETY = re.compile(r"(?i)\bsafety\b")
_C_COPIES = frozenset(["gets", "strcpy", "strcat", "sprintf", "vsprintf", "stpcpy", "wcscpy"])
_FORMATS = {"printf": 0, "fprintf": 1, "syslog": 1, "sprintf": 1, "snprintf": 2, "vprintf": 0}


def _detect(workspace: Workspace, context: DetectorContext) -> Iterator[Finding]:
    for file in workspace.of("rust", "c"):
        context.check_cancelled()
        if file.tree is not None and not is_test_path(file.path):
            check = _rust if file.language == "rust" else _c
            yield from check(file, file.tree.root_node)


def _rust(file: SourceFile, root: "Node") -> Iterator[Finding]:
    if "unsafe" not in file.text:
        return
    reported: set[int] = set()
    for block in walk(root, "unsafe_block", "function_item", "static_item"):
        text = node_text(block)
        if block.type == "static_item":
            if "static mut " in text[:40]:
                yield RULES["unsafe-shared-state"].at(file, line_of(block))
            continue
        if block.type == "function_item" and not re.match(
            r"(pub(\([^)]*\))?\s+)?(const\s+)?unsafe\s", text
        ):
            continue
        first = line_of(block)
        above = "\n".join(file.lines[max(0, first - 12) : first])
        stated = bool(_SAFETY.search(above) or _SAFETY.search(text))
        for offset, line in enumerate(text.split("\n")):
            number = first + offset
            if number in reported or line.lstrip().startswith("//"):
                continue
            for entry in RULES.entries.values():
                if any(one.pattern.search(line) for one in entry.lines):
                    reported.add(number)
                    severity = Severity.INFO if stated else None
                    yield entry.rule.at(file, number, severity=severity, confidence=0.7)
                    break


def _c(file: SourceFile, root: "Node") -> Iterator[Finding]:
    for call in walk(root, "call_expression"):
        name = node_text(call.child_by_field_name("function"))
        listed = call.child_by_field_name("arguments")
        arguments = [] if listed is None else list(listed.named_children)
        line = line_of(call)
        if name in _C_COPIES:
            if (
                name in ("strcpy", "strcat")
                and len(arguments) > 1
                and arguments[1].type == "string_literal"
            ):
                continue
            if (
                name == "sprintf"
                and len(arguments) > 1
                and not re.search(r"%s|%\[", node_text(arguments[1]))
            ):
                continue
            yield RULES["unbounded-copy"].at(
                file, line, f"{name} writes past the end of a short buffer: use a bounded function."
            )
        elif name in ("scanf", "sscanf", "fscanf") and re.search(r"\"[^\"]*%s", node_text(listed)):
            yield RULES["unbounded-copy"].at(
                file, line, "%s without a width writes past the end of the buffer."
            )
        elif (
            name in ("system", "popen")
            and arguments
            and arguments[0].type not in ("string_literal", "concatenated_string")
        ):
            yield RULES["command-injection"].at(
                file,
                line,
                f"{name} runs a shell: use execve with an argument list.",
                confidence=0.7,
            )
        if name in _FORMATS and len(arguments) == _FORMATS[name] + 1:
            last = arguments[-1]
            if last.type in (
                "identifier",
                "subscript_expression",
                "field_expression",
                "pointer_expression",
            ):
                if not node_text(last).isupper():
                    yield RULES["format-string"].at(
                        file,
                        line,
                        f'The format comes from data: use {name}("%s", …).',
                        confidence=0.8,
                    )


UNSAFE_MEMORY = Detector(
    "unsafe_memory", "Finds unchecked memory access in Rust's unsafe code and in C.", _detect, RULES
)
