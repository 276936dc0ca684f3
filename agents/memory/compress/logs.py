"""Log lines to templates: lines that differ in numbers, times and names only are counted together."""

import re

_VALUES = (
    (re.compile(r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}(?:[.,]\d{1,9})?(?:Z|[+-]\d{2}:?\d{2})?"), "<time>"),
    (re.compile(r"\b\d{2}:\d{2}:\d{2}(?:[.,]\d{1,9})?\b"), "<time>"),
    (re.compile(r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b"), "<uuid>"),
    (re.compile(r"\b(?:\d{1,3}\.){3}\d{1,3}(?::\d{1,5})?\b"), "<ip>"),
    (re.compile(r"\b0x[0-9a-fA-F]+\b|\b(?=[0-9a-f]*\d)[0-9a-f]{12,64}\b"), "<hex>"),
    (re.compile(r"\d+(?:\.\d+)?"), "<n>"),
)  # fmt: skip


def log_template(line: str) -> str:
    """The line with its variable parts replaced."""
    for pattern, name in _VALUES:
        line = pattern.sub(name, line)
    return line


def log_templates(text: str) -> str:
    """Templates in the order of their first lines, with count and line range; single lines stay."""
    groups: dict[str, list[int]] = {}
    lines = text.splitlines()
    for number, line in enumerate(lines, start=1):
        if line.strip():
            groups.setdefault(log_template(line), []).append(number)
    return "\n".join(
        lines[numbers[0] - 1]
        if len(numbers) == 1
        else f"[{len(numbers)}× in lines {numbers[0]}–{numbers[-1]}] {template}"
        for template, numbers in groups.items()
    )
