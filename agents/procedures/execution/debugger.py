"""`debugger`: a stack trace as a diagnosis: frames, the suspected line, its cause, and how to go on."""

import re
from collections.abc import Sequence
from pathlib import PurePosixPath

from agents.outputs.diagnosis import Diagnosis, StackFrame
from agents.procedures.execution.failure_causes import probable_cause
from agents.procedures.execution.traceback_parser import Frame, Trace, parse_trace
from agents.procedures.procedure import AgentTask, ProcedureContext
from agents.procedures.task_text import bounded
from agents.workspace.source_file import SourceFile
from agents.workspace.workspace import Workspace

_GOOD = re.compile(
    r"\b(?:worked|works|good|passed|fine) (?:in|at|with|on|since|until) (v?[\w./-]{1,60})",
    re.IGNORECASE,
)
_INSTALLED = (
    "site-packages/",
    "dist-packages/",
    "node_modules/",
    "/lib/python",
    "/usr/lib",
    "/go/pkg/",
    ".cargo/",
)
_TRACE_SUFFIXES = (".log", ".txt", ".trace")


async def run(task: AgentTask, context: ProcedureContext) -> Diagnosis:
    """Diagnose the trace in the document, the task, an input or a log of the workspace."""
    texts = [task.document, str(task.inputs.get("trace", "")), task.text]
    texts += [file.text for file in task.workspace if file.path.endswith(_TRACE_SUFFIXES)]
    for text in texts:
        trace = await context.in_thread(parse_trace, text) if text.strip() else None
        if trace is not None:
            return diagnose(trace, task.workspace, task.text)
    return Diagnosis(
        cannot_do="There is no stack trace of Python, JavaScript, Go, Rust or Java in the task: give one."
    )


def diagnose(trace: Trace, workspace: Workspace, task: str = "") -> Diagnosis:
    """The suspected line is that of the innermost frame inside the workspace."""
    located = [(frame, _find(frame, workspace)) for frame in trace.frames]
    own = [(frame, file) for frame, file in located if file is not None]
    frame, file = own[-1] if own else (trace.frames[-1], None) if trace.frames else (None, None)
    line = frame.line if frame else 0
    source = frame.source if frame else ""
    if file is not None and 0 < line <= len(file.lines):
        source = file.lines[line - 1].strip()
    cause, confidence = probable_cause(trace, source, file)
    if file is None:
        confidence *= 0.5
    elif own and own[-1][0] is not trace.frames[-1]:
        called = trace.frames[-1].function or trace.frames[-1].file
        cause += f" The error arises in `{called:.80}`, outside of the files; this line calls it."
        confidence *= 0.9
    return Diagnosis(
        language=trace.language,
        error=bounded(trace.error, 300),
        message=bounded(trace.message, 4_000),
        frames=[_stack_frame(one, found) for one, found in located],
        file=file.path if file else "",
        line=line if file else 0,
        cause=bounded(cause, 4_000),
        confidence=round(confidence, 2),
        next_steps=_next_steps(trace, file, line, task),
    )


def _stack_frame(frame: Frame, file: SourceFile | None) -> StackFrame:
    source = frame.source
    if file is not None and 0 < frame.line <= len(file.lines):
        source = file.lines[frame.line - 1].strip()
    return StackFrame(
        file=bounded(file.path if file else frame.file, 300),
        line=frame.line,
        function=bounded(frame.function, 300),
        source=bounded(source, 300),
        in_workspace=file is not None,
    )


def _find(frame: Frame, workspace: Workspace) -> SourceFile | None:
    """The workspace's file of a frame: the one with the longest common end of path, and enough lines."""
    if any(part in frame.file for part in _INSTALLED) or frame.file.startswith("<"):
        return None
    parts = PurePosixPath(frame.file.replace("\\", "/")).parts
    best: tuple[int, SourceFile] | None = None
    tied = False
    for file in workspace:
        own = PurePosixPath(file.path).parts
        common = 0
        for one, other in zip(reversed(parts), reversed(own), strict=False):
            if one != other:
                break
            common += 1
        if not common or len(file.lines) < frame.line:
            continue
        if best is None or common > best[0]:
            best, tied = (common, file), False
        elif common == best[0]:
            tied = True
    return None if best is None or tied else best[1]


def _next_steps(trace: Trace, file: SourceFile | None, line: int, task: str) -> list[str]:
    steps = []
    if file is not None:
        steps.append(f"Read {file.path}:{line} and the callers in the frames above.")
    command = _test_command(trace, file)
    if command:
        steps.append(f"Reproduce: {command}")
    match = _GOOD.search(task)
    good = match[1] if match else "<last good commit>"
    steps.append(f"If it worked before: git bisect start HEAD {good}")
    if command:
        steps.append(f"git bisect run {command}")
    return [bounded(step, 300) for step in steps]


def _test_command(trace: Trace, file: SourceFile | None) -> str:
    """A command that runs the failing test, if a frame is in one."""
    tests: Sequence[Frame] = [
        frame
        for frame in trace.frames
        if frame.function.startswith("test") or "test" in PurePosixPath(frame.file).name
    ]
    if trace.language == "python" and tests:
        name = tests[0].function if tests[0].function.startswith("test") else ""
        path = (
            tests[0].file
            if not tests[0].file.startswith("/")
            else PurePosixPath(tests[0].file).name
        )
        return f"python -m pytest -x {path}" + (f" -k {name}" if name else "")
    return {"go": "go test ./...", "rust": "cargo test"}.get(trace.language, "") if file else ""
