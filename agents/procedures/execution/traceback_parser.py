"""Stack traces of Python, JavaScript, Go, Rust and Java as frames, outermost first."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field

MAX_FRAMES = 200


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame; `source` is the line of code that the trace quotes, or empty."""

    file: str
    line: int
    function: str = ""
    source: str = ""


@dataclass(slots=True)
class Trace:
    """A failure: its language, the kind and message of the error, and the frames, the failing one last."""

    language: str
    error: str
    message: str = ""
    frames: list[Frame] = field(default_factory=list)


_PY_FRAME = re.compile(r'^\s*File "([^"\n]{1,400})", line (\d{1,7})(?:, in ([^\n]{1,200}))?\s*$')
_PY_ERROR = re.compile(
    r"^((?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Warning|Interrupt|Exit|Iteration|Group|[A-Z]\w*)?)(?::\s?(.*))?$"
)
_PYTEST_FRAME = re.compile(
    r"^([\w./\\-]{1,300}\.py):(\d{1,7}): (?:in (\w+)|(\w*(?:Error|Exception)\w*|AssertionError))?\s*$"
)
_PYTEST_ERROR = re.compile(r"^E\s+([A-Z]\w*(?:Error|Exception|Failed|Exit))(?::\s?(.*))?$")
_JS_FRAME = re.compile(
    r"^\s*at (?:(?:async )?([^\n(]{1,200}?) \()?(?:file://)?((?:[A-Za-z]:)?[^\s()]{1,400}?):(\d{1,7}):\d{1,6}\)?\s*$"
)
_JS_ERROR = re.compile(
    r"^(?:Uncaught )?(?:\w+ )?([A-Z]\w*(?:Error|Exception)|Error)(?: \[[\w_]+\])?(?::\s?(.*))?$"
)
_GO_PANIC = re.compile(r"^(?:panic|fatal error): (.*)$", re.MULTILINE)
_GO_PLACE = re.compile(r"^\s+(\S{1,400}\.go):(\d{1,7})(?: \+0x[0-9a-f]+)?\s*$")
_RUST_NEW = re.compile(
    r"thread '([^'\n]{0,100})'[^\n]{0,40} panicked at ([^\n:]{1,300}\.rs):(\d{1,7}):\d{1,6}:\n(.*)"
)
_RUST_OLD = re.compile(
    r"thread '([^'\n]{0,100})' panicked at '((?:[^'\n]|'(?!, ))*)', ([^\n:]{1,300}\.rs):(\d{1,7})"
)
_RUST_FRAME = re.compile(
    r"^\s*\d{1,4}: ([^\n]{1,300})\n\s+at ([^\n:]{1,300}\.rs):(\d{1,7})", re.MULTILINE
)
_JAVA_FRAME = re.compile(
    r"^\s*at ([\w.$<>]{1,300})\(([\w$-]{1,200}\.(?:java|kt|scala)):(\d{1,7})\)\s*$"
)
_JAVA_ERROR = re.compile(
    r"^(?:Exception in thread \"[^\"\n]*\" |Caused by: )?((?:[a-z_]\w*\.)+[A-Z][\w$]*)(?::\s?(.*))?$"
)


def parse_trace(text: str) -> Trace | None:
    """The last trace of a text, or None if there is none in a known form."""
    for parse in _PARSERS:
        trace = parse(text)
        if trace is not None:
            trace.frames = trace.frames[-MAX_FRAMES:]
            return trace
    return None


def _python(text: str) -> Trace | None:
    frames: list[Frame] = []
    trace: Trace | None = None
    lines = text.split("\n")
    for number, line in enumerate(lines):
        if line.strip() == "Traceback (most recent call last):":
            frames = []
            continue
        match = _PY_FRAME.match(line)
        if match:
            following = lines[number + 1] if number + 1 < len(lines) else ""
            quoted = following.strip() if following.startswith("    ") else ""
            frames.append(Frame(match[1], int(match[2]), match[3] or "", quoted))
            continue
        error = _PY_ERROR.match(line) if frames and not line.startswith(" ") else None
        if error:
            trace = Trace("python", error[1], (error[2] or "").strip(), frames)
            frames = []
    if trace is None and frames:
        trace = Trace("python", "", "", frames)
    return trace or _pytest(lines)


def _pytest(lines: list[str]) -> Trace | None:
    frames: list[Frame] = []
    error = ("", "")
    for number, line in enumerate(lines):
        match = _PYTEST_FRAME.match(line)
        if match:
            before = next((one for one in reversed(lines[:number]) if one.startswith(">")), "")
            frames.append(Frame(match[1], int(match[2]), match[3] or "", before[1:].strip()))
            error = (error[0] or match[4] or "", error[1])
        found = _PYTEST_ERROR.match(line)
        if found:
            error = (found[1], (found[2] or "").strip())
    return Trace("python", error[0] or "AssertionError", error[1], frames) if frames else None


def _javascript(text: str) -> Trace | None:
    error = ("", "")
    frames: list[Frame] = []
    for line in text.split("\n"):
        match = _JS_FRAME.match(line)
        if match and not match[2].startswith("node:"):
            frames.append(Frame(match[2], int(match[3]), (match[1] or "").strip()))
            continue
        found = _JS_ERROR.match(line.strip())
        if found:
            error, frames = (found[1], (found[2] or "").strip()), []
    return Trace("javascript", *error, frames[::-1]) if frames and error[0] else None


def _go(text: str) -> Trace | None:
    panic = _GO_PANIC.search(text)
    if panic is None:
        return None
    frames: list[Frame] = []
    function = ""
    for line in text[panic.end() :].split("\n"):
        match = _GO_PLACE.match(line)
        if match:
            if not function.startswith(("runtime.", "panic(")):
                frames.append(Frame(match[1], int(match[2]), function))
        elif line.strip() and not line.startswith(("\t", "goroutine", "[")):
            function = line.strip().rpartition("(")[0].removeprefix("created by ")
        elif line.startswith("goroutine") and frames:
            break  # the first goroutine is the failing one
    kind = "runtime error" if panic[1].startswith("runtime error") else "panic"
    message = panic[1].removeprefix("runtime error: ")
    return Trace("go", kind, message, frames[::-1]) if frames else None


def _rust(text: str) -> Trace | None:
    place = None
    for match in _RUST_NEW.finditer(text):
        place = Frame(match[2], int(match[3])), match[4]
    for match in _RUST_OLD.finditer(text):
        place = Frame(match[3], int(match[4])), match[2]
    if place is None:
        return None
    frames = [
        Frame(match[2], int(match[3]), match[1].strip()) for match in _RUST_FRAME.finditer(text)
    ]
    own = [frame for frame in frames if "/rustc/" not in frame.file][::-1]
    if not own or (own[-1].file, own[-1].line) != (place[0].file, place[0].line):
        own.append(place[0])
    return Trace("rust", "panic", place[1].strip(), own)


def _java(text: str) -> Trace | None:
    error = ("", "")
    frames: list[Frame] = []
    for line in text.split("\n"):
        match = _JAVA_FRAME.match(line)
        if match:
            package = match[1].rpartition(".")[0].rpartition(".")[0].replace(".", "/")
            path = f"{package}/{match[2]}" if package else match[2]
            frames.append(Frame(path, int(match[3]), match[1]))
            continue
        found = _JAVA_ERROR.match(line.strip())
        if found:  # the last cause is the root
            error, frames = (found[1], (found[2] or "").strip()), []
    return Trace("java", *error, frames[::-1]) if frames and error[0] else None


_PARSERS: tuple[Callable[[str], Trace | None], ...] = (_rust, _go, _java, _python, _javascript)
