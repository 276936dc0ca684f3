"""Stack traces of Python, JavaScript and Java to the error and its frames, without source lines."""

import re
from dataclasses import dataclass

MAX_FRAMES = 12
_PYTHON_FRAME = re.compile(r'^\s*File "([^"\n]{1,300})", line (\d{1,9})(?:, in (\S{1,200}))?')
_AT_FRAME = re.compile(
    r"^\s*at (?:async )?(?:([^()\n]{1,200}?) ?\()?([^()\s]{1,300}?:\d{1,9})(?::\d{1,9})?\)?\s*$"
)
_ERROR = re.compile(
    r"^(?:Exception in thread \S+ |Caused by: |Uncaught )?"
    r"([\w.$]{1,200}(?:Error|Exception|Interrupt|Exit|Warning))\b(.{0,300})"
)


@dataclass(frozen=True, slots=True)
class Frame:
    """One call, such as `app/main.py:12` in `run`."""

    place: str
    function: str

    def __str__(self) -> str:
        return f"{self.place} in {self.function}" if self.function else self.place


def stack_trace_frames(text: str) -> str | None:
    """Errors and frames in the order of the text, repeated calls counted, or None if there is no trace."""
    lines: list[str] = []
    frames: list[Frame] = []
    total = 0
    for line in text.splitlines():
        frame = _frame(line)
        if frame is not None:
            frames.append(frame)
            total += 1
            continue
        error = _ERROR.match(line)
        if error is not None:
            lines += _listed(frames)
            lines.append(f"{error[1]}{error[2]}".rstrip())
            frames = []
    if not total:
        return None
    return "\n".join(lines + _listed(frames))


def is_stack_trace(text: str) -> bool:
    """Whether a text is little else than a trace: a third of its lines, or more, are frames."""
    lines = [line for line in text.splitlines() if line.strip()]
    return 3 * sum(_frame(line) is not None for line in lines) >= max(1, len(lines) - 3)


def _frame(line: str) -> Frame | None:
    python = _PYTHON_FRAME.match(line)
    if python is not None:
        return Frame(f"{python[1]}:{python[2]}", python[3] or "")
    at = _AT_FRAME.match(line)
    return None if at is None else Frame(at[2], at[1] or "")


def _listed(frames: list[Frame]) -> list[str]:
    """The frames, runs of one call folded, at most `MAX_FRAMES`: the first and the last ones."""
    folded: list[tuple[Frame, int]] = []
    for frame in frames:
        if folded and folded[-1][0] == frame:
            folded[-1] = (frame, folded[-1][1] + 1)
        else:
            folded.append((frame, 1))
    shown = [f"  {frame}{f' ({count}×)' if count > 1 else ''}" for frame, count in folded]
    if len(shown) > MAX_FRAMES:
        half = MAX_FRAMES // 2
        shown[half:-half] = [f"  … {len(shown) - 2 * half} frames"]
    return shown
