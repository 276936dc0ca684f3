"""The trace of a run or of one agent: its events as entries that can be folded.

A model step with its thought, action and observation is one entry; so is a tool call with its approval, so
are the candidates of one piece of code, and so are the findings and the decisions that follow each other. A
pure function of the events.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from agents.api.events import RunEvent, RunEventType
from agents.reports.candidates import is_of_width, read_widths
from app.text.safe_text import safe_line, safe_text
from app.tui.glyphs import Glyphs
from app.tui.numbers import clock_time, compact, duration
from app.tui.view.candidate_lines import build_candidates, width_style, width_summary
from app.tui.view.repair_lines import REPAIR_WORDS, repair_rows, repair_summary
from app.tui.view.spans import Line, Span, cut, justify
from app.tui.view.wrapping import wrap_cells

MAX_ENTRIES = 400
"""Entries that are shown; the newest stay."""
MAX_ROWS = 12
"""Rows of one observation or argument."""
MAX_FINDINGS = 40
"""Rows of findings in one entry."""
_HEAD_CELLS = 11
_INDENT = 13

_OF_STEP = frozenset([RunEventType.ACTION_CHOSEN, RunEventType.STEP_FINISHED])
_OF_CALL = frozenset(
    [
        RunEventType.APPROVAL_REQUESTED,
        RunEventType.APPROVAL_RESOLVED,
        RunEventType.TOOL_STARTED,
        RunEventType.TOOL_OUTPUT,
        RunEventType.TOOL_FINISHED,
    ]
)
_BEGINS_CALL = frozenset([RunEventType.APPROVAL_REQUESTED, RunEventType.TOOL_STARTED])
_TOGETHER = frozenset([RunEventType.FINDING, RunEventType.DECISION, RunEventType.MODEL_TEST])
"""Events that join the entry of one before of the same type."""
_HIDDEN = frozenset([RunEventType.BUDGET, RunEventType.TOKEN_DELTA])


@dataclass(slots=True)
class TraceEntry:
    """Some events that belong together.

    Attributes:
        kind: type of the first one.
        events: in their order.
    """

    kind: RunEventType
    events: list[RunEvent] = field(default_factory=list)

    @property
    def number(self) -> int:
        """Sequence of the first event: the same for the entry's whole life."""
        return self.events[0].sequence

    @property
    def is_open_at_first(self) -> bool:
        """Whether its rows are shown without a key."""
        return self.kind in (RunEventType.FINDING, RunEventType.WIDTH_STARTED)

    def first(self, kind: RunEventType) -> Mapping[str, object] | None:
        """Data of the first event of a type, or None."""
        return next((one.data for one in self.events if one.type is kind), None)


def trace_entries(events: Sequence[RunEvent]) -> list[TraceEntry]:
    """The entries of a trace, in the order in which they began."""
    entries: list[TraceEntry] = []
    last: dict[tuple[str, str], TraceEntry] = {}
    widths: dict[object, TraceEntry] = {}
    for event in events:
        if event.type in _HIDDEN or _says_nothing_new(event):
            continue
        if is_of_width(event):  # whatever happens between, such as the calls that check
            number = (event.node, event.agent, event.data.get("width"))
            if number in widths:
                widths[number].events.append(event)
            else:
                widths[number] = TraceEntry(RunEventType.WIDTH_STARTED, [event])
                entries.append(widths[number])
            continue
        key = (event.node, event.agent)
        entry = last.get(key)
        if entry is not None and _joins(event, entry):
            entry.events.append(event)
            continue
        last[key] = TraceEntry(event.type, [event])
        entries.append(last[key])
    return entries[-MAX_ENTRIES:]


def _says_nothing_new(event: RunEvent) -> bool:
    """A node's own state says the same as its run's; that it runs is told by what it does."""
    if event.type is RunEventType.RUN_STATE:
        return bool(event.node)
    return event.type is RunEventType.NODE_STATE and event.data.get("state") == "running"


def _joins(event: RunEvent, entry: TraceEntry) -> bool:
    if event.type is RunEventType.DECISION and event.data.get("reason"):
        return False
    if entry.kind is RunEventType.STEP_STARTED:
        return event.type in _OF_STEP or event.type in _OF_CALL
    if entry.kind in _BEGINS_CALL and event.type in _OF_CALL:
        begun = entry.first(RunEventType.TOOL_STARTED) is not None
        return event.type not in _BEGINS_CALL or not (begun or _denied(entry))
    return event.type in _TOGETHER and event.type is entry.kind


def _denied(entry: TraceEntry) -> bool:
    answer = entry.first(RunEventType.APPROVAL_RESOLVED)
    return answer is not None and not answer.get("allowed")


def build_trace(
    entries: Sequence[TraceEntry],
    *,
    toggled: Collection[int],
    cursor: int,
    with_agents: bool,
    glyphs: Glyphs,
    cells: int,
) -> tuple[list[Line], list[int]]:
    """The rows of a trace, and the entry of each row.

    Args:
        entries: as `trace_entries`.
        toggled: numbers of the entries that were folded or unfolded by a key.
        cursor: index of the selected entry.
        with_agents: whether each entry names its agent, as in the trace of a whole run.
        glyphs: the terminal's glyphs.
        cells: width.
    """
    lines: list[Line] = []
    owners: list[int] = []
    over = _is_over(entries)
    for at, entry in enumerate(entries):
        body = _body(entry, glyphs, cells, over=over)
        is_open = bool(body) and entry.is_open_at_first != (entry.number in toggled)
        mark = (glyphs.more_down if is_open else glyphs.current) if body else " "
        own = [_head(entry, mark, glyphs, cells, with_agents, selected=at == cursor)]
        own += body if is_open else []
        lines += own
        owners += [at] * len(own)
    return lines, owners


def _is_over(entries: Sequence[TraceEntry]) -> bool:
    """Whether the run or, in the trace of one agent, its node has ended."""
    states = [
        one.events[0].data.get("state")
        for one in entries
        if one.kind in (RunEventType.RUN_STATE, RunEventType.NODE_STATE)
    ]
    return bool(states) and states[-1] not in ("pending", "running")


def _head(
    entry: TraceEntry, mark: str, glyphs: Glyphs, cells: int, with_agents: bool, *, selected: bool
) -> Line:
    event = entry.events[0]
    word, text, style, facts = _summary(entry)
    agent = safe_line(event.agent or event.node) if with_agents else ""
    left = [
        Span(f"{glyphs.bar_selected} " if selected else "  ", "$accent"),
        Span(f"{mark} ", "$faint"),
        Span(f"{word:<{_HEAD_CELLS}}", "$muted"),
        Span(f"{agent}  " if agent else "", "$primary"),
        Span(safe_line(text), style),
    ]
    time = Span(f"{facts}  {clock_time(event.time)}" if facts else clock_time(event.time), "$faint")
    return justify(left, [time], cells)


def _summary(entry: TraceEntry) -> tuple[str, str, str, str]:
    """Word, text, style and figures of an entry's row."""
    data = entry.events[0].data
    match entry.kind:
        case RunEventType.STEP_STARTED:
            return _step_summary(entry)
        case RunEventType.APPROVAL_REQUESTED | RunEventType.TOOL_STARTED:
            text, style = _call_summary(entry)
            return "call", text, style, _call_seconds(entry)
        case RunEventType.FINDING:
            found = [str(one.data["severity"]) for one in entry.events]
            counts = ", ".join(f"{found.count(name)} {name}" for name in dict.fromkeys(found))
            return "found", counts, "$warning", ""
        case RunEventType.DECISION if data.get("reason"):
            style = "$warning" if data.get("abstained") else ""
            return "decided", f"{data.get('question', '')}: {data['reason']}", style, ""
        case RunEventType.DECISION:
            abstained = sum(bool(one.data.get("abstained")) for one in entry.events)
            told = f"{len(entry.events)} one-token answers"
            return "decided", f"{told}, {abstained} abstained" if abstained else told, "", ""
        case RunEventType.WIDTH_STARTED:
            (report,) = read_widths(entry.events)
            return "candidates", width_summary(report), width_style(report), ""
        case kind if kind in REPAIR_WORDS:
            text, style = repair_summary(entry.events[0])
            return REPAIR_WORDS[kind], text, style, ""
        case RunEventType.RUN_STATE | RunEventType.NODE_STATE:
            reason = data.get("reason") or data.get("error") or ""
            state = str(data["state"]).replace("_", " ")
            bad = state in ("failed", "denied", "timed out", "exhausted")
            return "state", f"{state} {reason}".strip(), "$error" if bad else "$muted", ""
        case RunEventType.MODEL_TEST:
            return "model", str(entry.events[-1].data.get("text", "")), "$muted", ""
        case RunEventType.NOTE | RunEventType.ERROR:
            style = "$error" if entry.kind is RunEventType.ERROR else "$muted"
            return entry.kind.value, str(data.get("text", "")), style, ""
        case _:
            return entry.kind.value.replace("_", " "), _text_of(data), "$muted", ""


def _step_summary(entry: TraceEntry) -> tuple[str, str, str, str]:
    chosen = entry.first(RunEventType.ACTION_CHOSEN)
    finished = entry.first(RunEventType.STEP_FINISHED)
    word = f"step {entry.events[0].data.get('step', '')}"
    text = "generating" if chosen is None else f"{chosen['action']} {_text_of(chosen.get('input'))}"
    if finished is None:
        return word, text, "$accent", ""
    data = {name: value for name, value in finished.items() if isinstance(value, int | float)}
    cached = f", {compact(int(data['n_cached']))} cached" if data.get("n_cached") else ""
    facts = (
        f"{duration(data['end'] - data['start'])}, {compact(int(data['n_prompt']))} prompt{cached}, "
        f"{compact(int(data['n_gen']))} new"
        if {"start", "end", "n_prompt", "n_gen"} <= set(data)
        else ""
    )
    return word, text, "$accent", facts


def _call_summary(entry: TraceEntry) -> tuple[str, str]:
    asked = entry.first(RunEventType.APPROVAL_REQUESTED)
    answer = entry.first(RunEventType.APPROVAL_RESOLVED)
    started = entry.first(RunEventType.TOOL_STARTED)
    finished = entry.first(RunEventType.TOOL_FINISHED)
    known = started or asked or {}
    told = str((asked or {}).get("target") or (started or {}).get("arguments", ""))
    text = f"{known.get('tool', '')} {told}".strip()
    if answer is not None and not answer.get("allowed"):
        return f"{text}: {answer.get('reason') or 'denied'}", "$error"
    if started is None and answer is not None:
        return f"{text}: allowed", "$accent"
    if started is None:
        return f"{text}: waits for approval", "bold $warning"
    if finished is None:
        return text, "$accent"
    failed = bool(finished.get("failed"))
    return f"{text}: failed" if failed else text, "$error" if failed else "$accent"


def _call_seconds(entry: TraceEntry) -> str:
    finished = entry.first(RunEventType.TOOL_FINISHED)
    seconds = (finished or {}).get("seconds")
    return duration(seconds) if isinstance(seconds, int | float) else ""


def _body(entry: TraceEntry, glyphs: Glyphs, cells: int, *, over: bool) -> list[Line]:
    """The rows of an entry that is unfolded; none if its first row says all."""
    if entry.kind is RunEventType.WIDTH_STARTED:
        (report,) = read_widths(entry.events)
        return build_candidates(report, glyphs, cells, over=over)
    if entry.kind is RunEventType.FINDING:
        rows = [line for one in entry.events[:MAX_FINDINGS] for line in _finding(one, cells)]
        more = len(entry.events) - MAX_FINDINGS
        return (
            [*rows, *_block("", f"… {more} more findings", "$muted", cells)] if more > 0 else rows
        )
    if entry.kind in (RunEventType.NOTE, RunEventType.ERROR):
        text = str(entry.events[0].data.get("text", ""))
        return _block("", text, "$muted", cells) if len(text) > cells // 2 else []
    return [line for event in entry.events for line in _event_rows(event, cells)]


def _finding(event: RunEvent, cells: int) -> list[Line]:
    data = event.data
    return _block(
        str(data["severity"]), f"{data['file']}:{data['line']} {data['message']}", "", cells
    )


def _event_rows(event: RunEvent, cells: int) -> list[Line]:
    data = event.data
    match event.type:
        case RunEventType.ACTION_CHOSEN:
            thought = str(data.get("thought", ""))
            lines = _block("thought", thought, "$muted", cells) if thought else []
            action = f"{data.get('action', '')} {_text_of(data.get('input'))}".rstrip()
            return [*lines, *_block("action", action, "$accent", cells)]
        case RunEventType.STEP_FINISHED if data.get("thought"):
            return _block("thought", str(data["thought"]), "$muted", cells)
        case RunEventType.TOOL_STARTED:
            return _block("input", str(data.get("arguments", "")), "$accent", cells)
        case RunEventType.TOOL_FINISHED:
            style = "$error" if data.get("failed") else "$foreground"
            return _block("observed", str(data.get("text", "")), style, cells)
        case RunEventType.DECISION if not data.get("reason"):  # with one it is that of a repair
            chosen = f"{data.get('question')}: {data.get('label')}"
            if data.get("abstained"):
                chosen += " (abstained: the detector's value stands)"
            return _block("", chosen, "$foreground", cells)
        case RunEventType.APPROVAL_REQUESTED:
            text = f"{data.get('tool')} {data.get('target', '')}"
            return _block("asked for", text, "$warning", cells)
        case RunEventType.APPROVAL_RESOLVED:
            text = "allowed" if data.get("allowed") else str(data.get("reason") or "denied")
            return _block("answer", text, "$foreground", cells)
        case _:
            return [
                line
                for word, text, style in repair_rows(event)
                for line in _block(word, text, style, cells)
            ]


def _block(word: str, text: str, style: str, cells: int) -> list[Line]:
    pieces = [
        piece
        for line in safe_text(text).split("\n")
        for piece in wrap_cells(line, max(1, cells - _INDENT - 2))
    ] or [""]
    if len(pieces) > MAX_ROWS:
        left = len(pieces) - MAX_ROWS
        pieces = [*pieces[:MAX_ROWS], f"… {left} more rows"]
    first, *others = pieces
    head = Span(f"    {word:<{_INDENT - 2}}", "$faint")
    return [
        cut((head, Span(first, style)), cells),
        *(cut((Span(" " * (_INDENT + 2)), Span(piece, style)), cells) for piece in others),
    ]


def _text_of(value: object) -> str:
    if value in (None, "", {}):
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def build_step_timeline(events: Sequence[RunEvent], glyphs: Glyphs, cells: int) -> list[Line]:
    """One row for each model step: when it ran, as a bar, and its tokens; empty without steps.

    A step's event has `start` and `end` in seconds of one clock, `n_prompt`, `n_cached` and `n_gen`.
    """
    steps = [
        event.data
        for event in events
        if event.type is RunEventType.STEP_FINISHED and "end" in event.data
    ]
    if not steps:
        return []
    begin = min(step["start"] for step in steps)
    span = max(max(step["end"] for step in steps) - begin, 1e-9)
    room = max(8, cells - 44)
    lines: list[Line] = []
    for number, step in enumerate(steps, 1):
        left = round((step["start"] - begin) / span * room)
        length = max(1, round((step["end"] - step["start"]) / span * room))
        cached = f", {compact(step['n_cached'])} cached" if step.get("n_cached") else ""
        lines.append(
            cut(
                (
                    Span(f"{number:>3} ", "$faint"),
                    Span(" " * min(left, room - 1)),
                    Span(glyphs.bar_full * min(length, room - min(left, room - 1)), "$primary"),
                    Span(
                        f" {duration(step['end'] - step['start'])}, {compact(step['n_prompt'])} prompt"
                        f"{cached}, {compact(step['n_gen'])} new",
                        "$muted",
                    ),
                ),
                cells,
            )
        )
    return lines
