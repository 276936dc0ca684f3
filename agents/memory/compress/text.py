"""`compress`: the compressor that suits a text."""

import re

from agents.memory.compress.code import code_signatures
from agents.memory.compress.json_shape import json_shape
from agents.memory.compress.logs import log_templates
from agents.memory.compress.stack_trace import is_stack_trace, stack_trace_frames

_LOG_LINE = re.compile(
    r"^\W{0,3}(?:\d{4}-\d{2}-\d{2}|\d{2}:\d{2}:\d{2}|(?:TRACE|DEBUG|INFO|WARN(?:ING)?|ERROR|FATAL)\b)"
)


def compress(text: str, path: str = "") -> str:
    """A shorter text, or the same one where no compressor makes it shorter.

    Args:
        text: a tool's output or a file.
        path: the file's name, if it has one.
    """
    shorter = _suited(text, path)
    return shorter if shorter is not None and len(shorter) < len(text) else text


def _suited(text: str, path: str) -> str | None:
    if text.lstrip()[:1] in ("{", "["):
        shape = json_shape(text)
        if shape is not None:
            return shape
    if not path and is_stack_trace(text):
        return stack_trace_frames(text)
    lines = [line for line in text.splitlines() if line.strip()]
    if lines and sum(_LOG_LINE.match(line) is not None for line in lines) * 2 >= len(lines):
        return log_templates(text)
    return code_signatures(path, text) if path else None
