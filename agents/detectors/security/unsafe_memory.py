"""The detector `unsafe_memory`: unchecked memory access in Rust and C.

In Rust a block whose comment states why it is sound (`SAFETY`, or a `# Safety` section) is reported as a
note only: the reader can check the reason.
"""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from agents.api.finding import Finding, Severity
from agents.detectors.audit.syntax_nodes import line_of, node_text, walk
from agents.detectors.detector import Detector, DetectorContext, Rule
from agents.detectors.security.python_files import is_test_path
from agents.workspace.source_file import SourceFile
from agents.workspace.workspace import Workspace

if TYPE_CHECKING:
    from tree_sitter import Node

_HIGH, _MEDIUM = Severity.HIGH, Severity.MEDIUM
REINTERPRETED = Rule("memory-reinterpreted", _HIGH, "memory read as another type", 704)
TRANSMUTE = Rule("unsafe-transmute", _MEDIUM, "reinterpretation of memory", 843)
RAW_POINTER = Rule("raw-pointer", _HIGH, "pointer made of a number", 822)
UNCHECKED = Rule("unchecked-access", _MEDIUM, "check switched off", 119)
UNINITIALIZED = Rule("uninitialized-memory", _HIGH, "memory read before it is written", 908)
UNBOUNDED_COPY = Rule("unbounded-copy", _HIGH, "copy without a bound", 120)
FORMAT_STRING = Rule("format-string", _HIGH, "format that is not constant", 134)
C_COMMAND = Rule("command-injection", _HIGH, "shell command that is not constant", 78)
SHARED_STATE = Rule("unsafe-shared-state", _MEDIUM, "mutable global without a lock", 362)
RULES = (
    REINTERPRETED, TRANSMUTE, RAW_POINTER, UNCHECKED, UNINITIALIZED, UNBOUNDED_COPY, FORMAT_STRING, C_COMMAND,
    SHARED_STATE,
)  # fmt: skip

_RUST: tuple[tuple[re.Pattern[str], Rule, str], ...] = (
    (re.compile(r"from_raw_parts(_mut)?\([^;]*\bas\s+\*(const|mut)\s+(?!u8\b|i8\b|c_char\b|c_void\b)\w"), REINTERPRETED,
     "The bytes may not be aligned or valid for the type: convert them with from_le_bytes or bytemuck."),
    (re.compile(r"\btransmute(_copy)?(::<.*>)?\("), TRANSMUTE,
     "transmute reinterprets memory without a check; prefer a conversion that the compiler checks."),
    (re.compile(r"\*\s*\(\s*[\w.]+\s+as\s+(usize\s+as\s+)?\*(const|mut)\s"), RAW_POINTER,
     "A number becomes an address that is read or written without a check."),
    (re.compile(r"\bMaybeUninit\b.*assume_init\(\)|\bmem::(uninitialized|zeroed)\b|\.set_len\("), UNINITIALIZED,
     "The memory may be read before anything is written to it."),
    (re.compile(r"\b(get_unchecked(_mut)?|from_utf8_unchecked|unwrap_unchecked|from_raw_parts(_mut)?|slice_unchecked|from_raw|offset_from)\("),
     UNCHECKED, "A check of bounds or validity is skipped: check the input here, or use the checked function."),
)  # fmt: skip
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
                yield SHARED_STATE.at(
                    file,
                    line_of(block),
                    "Threads race on it: use an atomic, a Mutex or a OnceLock.",
                )
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
            for pattern, rule, message in _RUST:
                if pattern.search(line):
                    reported.add(number)
                    severity = Severity.INFO if stated else rule.severity
                    yield rule.at(file, number, message, severity=severity, confidence=0.7)
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
            yield UNBOUNDED_COPY.at(
                file, line, f"{name} writes past the end of a short buffer: use a bounded function."
            )
        elif name in ("scanf", "sscanf", "fscanf") and re.search(r"\"[^\"]*%s", node_text(listed)):
            yield UNBOUNDED_COPY.at(
                file, line, "%s without a width writes past the end of the buffer."
            )
        elif (
            name in ("system", "popen")
            and arguments
            and arguments[0].type not in ("string_literal", "concatenated_string")
        ):
            yield C_COMMAND.at(
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
                    yield FORMAT_STRING.at(
                        file,
                        line,
                        f'The format comes from data: use {name}("%s", …).',
                        confidence=0.8,
                    )


UNSAFE_MEMORY = Detector(
    "unsafe_memory",
    "Finds unchecked memory access in Rust's unsafe code and in C.",
    _detect,
    RULES,
)
