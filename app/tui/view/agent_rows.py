"""Rows of the agents pane: runs and their agents.

Everything derives from `RunView`s, which derive from the runs' event logs.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from agents.api.events import RunState
from agents.service.run_view import AgentRow, RowGroup, RunView, summary_of
from app.text.safe_text import safe_line
from app.tui.glyphs import Glyphs
from app.tui.numbers import clamp, compact, duration, rate
from app.tui.view.spans import Line, Span, cut, fit, justify, width
from app.tui.view.wrapping import wrap_cells

Order = Literal["group", "start", "tokens"]
ORDERS: tuple[Order, ...] = ("group", "start", "tokens")
_NAME_CELLS = 22
_GROUP_CELLS = 9
_ACTION_CELLS = 26
"""Cells that are kept for what an agent does before a column of figures is shown."""
_WORDS = {
    RowGroup.WAITING: "waiting",
    RowGroup.FAILED: "failed",
    RowGroup.TOOL: "in a tool",
    RowGroup.RUNNING: "running",
    RowGroup.QUEUED: "queued",
    RowGroup.DONE: "done",
    RowGroup.STOPPED: "stopped",
    RowGroup.SKIPPED: "skipped",
}
_GROUP_STYLES = {
    RowGroup.WAITING: "bold $warning",
    RowGroup.FAILED: "$error",
    RowGroup.TOOL: "$accent",
    RowGroup.RUNNING: "$primary",
    RowGroup.QUEUED: "$faint",
    RowGroup.DONE: "$success",
    RowGroup.STOPPED: "$muted",
    RowGroup.SKIPPED: "$faint",
}
_EXACT_STATES = (RunState.TIMED_OUT, RunState.DENIED, RunState.EXHAUSTED)
"""Failures whose own word says more than the group's."""


@dataclass(frozen=True, slots=True)
class RowId:
    """What a row of the pane stands for: a run, or one agent of it."""

    run: str
    node: str = ""
    agent: str = ""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of figures at the right end of an agent's row; later ones are left out first."""

    title: str
    cells: int
    value: Callable[[AgentRow, float], str]


def _step(row: AgentRow, now: float) -> str:
    if not row.step:
        return ""
    return f"{row.step}/{row.max_steps}" if row.max_steps else str(row.step)


def _tokens(row: AgentRow, now: float) -> str:
    if not row.computed_tokens:
        return ""
    used = compact(row.computed_tokens)
    return f"{used}/{compact(row.max_tokens)}" if row.max_tokens else used


def _speed(row: AgentRow, now: float) -> str:
    return "" if row.tokens_per_second is None else rate(row.tokens_per_second)


def _age(row: AgentRow, now: float) -> str:
    if not row.started or row.state is RunState.SKIPPED:
        return ""
    return duration(max(0.0, (row.finished or now) - row.started))


# In the order of their importance.
COLUMNS = (
    Column("time", 8, _age),
    Column("found", 6, lambda row, now: str(row.findings or "")),
    Column("step", 6, _step),
    Column("tokens", 11, _tokens),
    Column("saved", 7, lambda row, now: compact(row.cached_tokens) if row.cached_tokens else ""),
    Column("tok/s", 7, _speed),
)
_SHOWN_ORDER = ("step", "found", "tok/s", "tokens", "saved", "time")

_SORTS: dict[Order, Callable[[AgentRow], tuple[float, ...]]] = {
    "group": lambda row: (row.group.rank, row.started or float("inf")),
    "start": lambda row: (row.started or float("inf"),),
    "tokens": lambda row: (-row.computed_tokens - row.cached_tokens, row.started),
}


def columns_for(rows: Sequence[AgentRow], now: float, cells: int) -> list[Column]:
    """The columns that a pane of this width shows, from left to right; those without a value are left out."""
    room = cells - 4 - _GROUP_CELLS - 1 - _NAME_CELLS - _ACTION_CELLS
    kept = []
    for column in COLUMNS:
        if not any(column.value(row, now) for row in rows):
            continue
        room -= column.cells
        if room < 0:
            break
        kept.append(column)
    return sorted(kept, key=lambda one: _SHOWN_ORDER.index(one.title))


def build_agents_head(views: Sequence[RunView], order: Order, cells: int) -> Line:
    """The pane's title: all agents of active runs by group, and how rows are sorted."""
    active = [view for view in views if not view.state.finished]
    spans = [Span("Agents", "bold $primary")]
    if active:
        summary = summary_of(row for view in active for row in view.rows)
        spans.append(Span(f"  {summary}", "$foreground"))
    elif views:
        spans.append(Span(f"  no run is active, {len(views)} finished", "$muted"))
    right = [Span(f"by {order}", "$faint")] if views else []
    return justify(spans, right, cells)


def build_model_line(name: str, abilities: str, cells: int) -> Line:
    """What the loaded model does for the agents, in one line."""
    return cut((Span(safe_line(f"{name}: {abilities}"), "$muted"),), cells)


def build_empty(cells: int, key: str) -> list[Line]:
    """What to do while there are no runs."""
    return [
        (Span(text, "$muted"),)
        for piece in (
            "No agent has run yet.",
            "@security_audit src in the prompt runs an agent on a folder; /agents lists all of them, "
            "and /agents secure-code-review src runs a pipeline.",
            f"{key} goes back to the conversation.",
        )
        for text in wrap_cells(piece, max(1, cells))
    ]


def build_runs(
    views: Sequence[RunView],
    *,
    now: float,
    order: Order,
    only: str,
    cursor: RowId | None,
    glyphs: Glyphs,
    cells: int,
    folded: Collection[str] = (),
) -> tuple[list[Line], list[RowId | None]]:
    """Lines for each run and for each of its agents, and what each line stands for.

    Args:
        views: the runs, newest first.
        now: Unix seconds.
        order: how the agents of a run are sorted.
        only: text that the agent's key, its group or its run's name must contain; empty for all.
        cursor: the selected row.
        glyphs: the terminal's glyphs.
        cells: width.
        folded: ids of the runs whose agents are not shown.
    """
    lines: list[Line] = []
    ids: list[RowId | None] = []
    for view in views:
        rows = sorted(_matching(view, only), key=_SORTS[order])
        if only and not rows:
            continue
        if lines:
            lines.append(())
            ids.append(None)
        own = RowId(view.id)
        head = _run_lines(view, now, glyphs, cells, selected=cursor == own)
        lines += head
        ids += [own, *[None] * (len(head) - 1)]
        if view.id in folded and not only:
            continue
        columns = columns_for(rows, now, cells)
        if rows and columns:
            lines.append(_titles(columns, cells))
            ids.append(None)
        before: RowGroup | None = None
        for row in rows:
            row_id = RowId(view.id, row.node, row.agent)
            named = row.group is not before or order != "group"
            lines.append(
                _agent_line(row, now, glyphs, cells, columns, named, selected=cursor == row_id)
            )
            ids.append(row_id)
            before = row.group
    return lines, ids


def _matching(view: RunView, only: str) -> list[AgentRow]:
    wanted = only.casefold()
    return [
        row
        for row in view.rows
        if wanted in f"{row.agent} {row.node} {row.group} {row.state} {view.name}".casefold()
    ]


def _run_lines(
    view: RunView, now: float, glyphs: Glyphs, cells: int, *, selected: bool
) -> list[Line]:
    """The run: its name and findings, then its agents by group and its budget."""
    seconds = max(0.0, (view.finished or now) - view.started) if view.started else 0.0
    found = ", ".join(f"{count} {name}" for name, count in view.severities.items())
    left = [
        Span(_cursor(glyphs, selected), "$accent"),
        Span(_glyph(view.state, glyphs), _style(view.state)),
        Span(f" {safe_line(view.name)}", "bold"),
        Span(f"  {safe_line(view.goal)}" if view.goal else "", "$muted"),
    ]
    if view.state.finished and view.state is not RunState.OK:
        left.append(Span(f"  {view.state.value.replace('_', ' ')}", _style(view.state)))
    if view.error:
        left.append(Span(f"  {safe_line(view.error)}", "$error"))
    lines = [justify(left, [Span(found, "$warning")], cells)]
    budget = [_of_limit(duration(seconds), view.max_seconds and duration(view.max_seconds))]
    if view.computed_tokens:
        limit = compact(view.max_tokens) if view.max_tokens else ""
        budget.insert(0, f"{_of_limit(compact(view.computed_tokens), limit)} tokens")
    if view.cached_tokens:
        budget.insert(0, f"{compact(view.cached_tokens)} saved by sharing")
    facts = f" {glyphs.separator} ".join(budget)
    summary = view.summary() if len(view.rows) > 1 else ""
    if width([Span(facts)]) + 6 > cells:
        facts = budget[-1]
    lines.append(justify([Span("    "), Span(summary, "$muted")], [Span(facts, "$faint")], cells))
    return lines


def _of_limit(used: str, limit: str | float) -> str:
    return f"{used} of {limit}" if limit else used


def _titles(columns: Sequence[Column], cells: int) -> Line:
    text = "".join(f"{column.title:>{column.cells}}" for column in columns)
    return justify([], [Span(text, "$faint")], cells)


def _agent_line(
    row: AgentRow,
    now: float,
    glyphs: Glyphs,
    cells: int,
    columns: Sequence[Column],
    named: bool,
    *,
    selected: bool,
) -> Line:
    group = row.group
    word = _WORDS[group]
    if row.state in _EXACT_STATES and not row.waits:
        word, named = row.state.value.replace("_", " "), True
    style = _GROUP_STYLES[group]
    doing = row.action or (row.reason if row.state.finished else "")
    if row.waits and not doing:
        doing = "waits for approval"
    figures = "".join(f"{column.value(row, now):>{column.cells}}" for column in columns)
    left = [
        Span(_cursor(glyphs, selected), "$accent"),
        Span(f"{word if named else '':<{_GROUP_CELLS}} ", style),
        Span(f"{_glyph(row.state, glyphs)} ", style),
        Span(_name(row)),
        Span(safe_line(doing), "bold $warning" if row.waits else "$muted"),
    ]
    if not columns:
        return cut(left, cells)
    return justify(left, [Span(figures, "$faint")], cells)


def _name(row: AgentRow) -> str:
    return f"{fit(safe_line(row.agent or row.node), _NAME_CELLS - 1):<{_NAME_CELLS}}"


def _cursor(glyphs: Glyphs, selected: bool) -> str:
    return f"{glyphs.bar_selected} " if selected else "  "


def _glyph(state: RunState, glyphs: Glyphs) -> str:
    if state is RunState.RUNNING:
        return glyphs.busy
    if state is RunState.OK:
        return glyphs.dot
    if state in (RunState.PENDING, RunState.SKIPPED):
        return glyphs.ring
    return glyphs.stopped if state is RunState.CANCELLED else glyphs.failed


_STYLES = {
    RunState.PENDING: "$faint",
    RunState.RUNNING: "$primary",
    RunState.OK: "$success",
    RunState.SKIPPED: "$faint",
    RunState.CANCELLED: "$muted",
}


def _style(state: RunState) -> str:
    return _STYLES.get(state, "$error")


def build_agent_facts(row: AgentRow, now: float, glyphs: Glyphs, cells: int) -> Line:
    """State, time, steps, tokens and tool calls of one agent, each with its limit."""
    facts = [row.state.value.replace("_", " ")]
    if row.started:
        seconds = duration(max(0.0, (row.finished or now) - row.started))
        facts.append(_of_limit(seconds, row.max_seconds and duration(row.max_seconds)))
    if row.step:
        facts.append(f"step {_step(row, now)}")
    if row.max_tokens:
        facts.append(f"{compact(row.computed_tokens)} of {compact(row.max_tokens)} tokens")
    if row.cached_tokens:
        facts.append(f"{compact(row.cached_tokens)} saved by sharing")
    if row.max_tools:
        facts.append(f"{row.tool_calls} of {row.max_tools} tool calls")
    return cut((Span(f" {glyphs.separator} ".join(facts), "$muted"),), cells)


def build_run_timeline(view: RunView, now: float, glyphs: Glyphs, cells: int) -> list[Line]:
    """One row for each agent that has begun: a bar from its begin to its end, over the run's time."""
    rows = sorted((row for row in view.rows if row.started), key=lambda row: row.started)
    if len(rows) < 2:
        return []
    begin = min(row.started for row in rows)
    span = max(max(row.finished or now for row in rows) - begin, 1e-9)
    room = max(8, cells - _NAME_CELLS - 10)
    lines: list[Line] = []
    for row in rows:
        seconds = max(0.0, (row.finished or now) - row.started)
        left = min(round((row.started - begin) / span * room), room - 1)
        length = int(clamp(round(seconds / span * room), 1, room - left))
        lines.append(
            cut(
                (
                    Span(_name(row), "$muted"),
                    Span(" " * left),
                    Span(glyphs.bar_full * length, _GROUP_STYLES[row.group]),
                    Span(" " * (room - left - length)),
                    Span(f" {duration(seconds)}", "$faint"),
                ),
                cells,
            )
        )
    return lines
