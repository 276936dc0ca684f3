"""Rows of the header and the status bar: model, engine state, context and key hints."""

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import wrap

from rich.cells import cell_len

from app.text.safe_text import safe_line
from app.tui.glyphs import Glyphs, gauge
from app.tui.numbers import clock_time, compact, duration, percent, rate
from app.tui.view.key_hints import KeyHint, build_hints, wanted_cells
from app.tui.view.spans import Line, Span, cut, fit, justify, plain, width
from app.tui.view.stats import is_busy
from app.tui.view.wrapping import wrap_cells
from engine.api.snapshot import EngineSnapshot, EngineState, Totals

_WITHOUT_MODEL = frozenset({EngineState.FAILED, EngineState.UNLOADED})
_GAUGE_CELLS, _REASON_CELLS = 40, 76
_TITLE_ROOM = 24
"""Cells of the header that are kept for the title before the least important figures are shown."""
_BESIDE_HINTS = 3
"""Cells that stay empty between the figures and the hints."""


@dataclass(frozen=True, slots=True)
class StatusFacts:
    """Input of the status bar beside the snapshot.

    Attributes:
        mode: `PROMPT` or `NAVIGATE`.
        context_used: tokens of the open conversation.
        generating: whether an answer of this conversation runs.
        hints: shown as far as there is room.
        unsaved: whether messages cannot be saved at present.
        as_of: when the engine was as it is shown, seconds since the epoch; None for the present.
    """

    mode: str
    context_used: int
    generating: bool
    hints: Sequence[KeyHint]
    unsaved: bool = False
    as_of: float | None = None


def build_header(
    snapshot: EngineSnapshot,
    title: str,
    glyphs: Glyphs,
    cells: int,
    *,
    server: str | None = None,
    serving: str | None = None,
    as_of: float | None = None,
    face: str = "",
) -> Line:
    """Face, name, server, model and conversation on the left; the engine's figures on the right.

    The address of the engine's server, or the one at which this engine is served, is always shown whole, if
    need be in place of figures.
    """
    address = server if serving is None else f"serving {serving}"
    dot = f" {glyphs.separator} "
    left = [Span(f" {glyphs.assistant} ", "bold $accent"), Span("Pravāha", "bold $primary")]
    if face:
        left.insert(1, Span(f"{face} ", "$primary"))
    if address is not None:
        left += [Span("  "), Span(safe_line(address), "$foreground")]
    needed = width(left)
    if snapshot.model is not None:
        left.append(Span("  "))
        left.append(Span(safe_line(snapshot.model.name), "$foreground"))
        left.append(Span(f"{dot}{safe_line(snapshot.model.weight_format)}", "$muted"))
    elif (coming := snapshot.next_model or snapshot.on_demand) is not None:
        left += [Span("  "), Span(safe_line(coming), "$muted")]
    right = [
        Span(f"{rate(snapshot.rates.decode_tokens_per_second)} tok/s", _fresh(snapshot)),
        Span(f"{dot}{snapshot.running} running{dot}{snapshot.waiting} queued", "$muted"),
        Span(f"{dot}KV {percent(snapshot.blocks.usage)} ", "$muted"),
    ]
    shares = build_shares(snapshot.totals, glyphs)
    if width(left) + width(right) + width(shares) + _TITLE_ROOM <= cells:
        right += shares
    if as_of is not None:
        right.insert(
            0,
            Span(
                f"as of {clock_time(as_of)}, esc returns{dot}",
                "bold $warning",
                "app.perform('time','live')",
            ),
        )
    while address is not None and right and needed + 1 + width(right) > cells:
        right.pop()
    if title and cells >= 100:
        left.append(Span("   "))
        left.append(
            Span(fit(safe_line(title), max(8, cells - width(left) - width(right) - 4)), "$muted")
        )
    return justify(left, right, cells)


def build_shares(totals: Totals, glyphs: Glyphs) -> Line:
    """`· hit 87% · draft 62%` since start: cached prompt tokens and accepted draft tokens.

    A share of nothing is left out.
    """
    parts = []
    if totals.prefix_cache_queries:
        parts.append(f"hit {percent(totals.prefix_cache_hits / totals.prefix_cache_queries)}")
    if totals.draft_tokens:
        parts.append(f"draft {percent(totals.accepted_draft_tokens / totals.draft_tokens)}")
    return tuple(Span(f"{glyphs.separator} {part} ", "$muted") for part in parts)


def _fresh(snapshot: EngineSnapshot) -> str:
    return "bold $primary" if is_busy(snapshot) else "$faint"


def build_state(snapshot: EngineSnapshot, generating: bool, glyphs: Glyphs) -> tuple[Span, Span]:
    """Glyph and label of the engine's state."""
    match snapshot.state:
        case EngineState.LOADING:
            share = percent(snapshot.loading_progress)
            return Span(f"{glyphs.ring} ", "$status-loading"), Span(
                f"loading {share}", "$status-loading"
            )
        case EngineState.FAILED:
            return Span(f"{glyphs.failed} ", "$status-failed"), Span("failed", "$status-failed")
        case EngineState.UNLOADED if snapshot.on_demand and not snapshot.last_error:
            return Span(f"{glyphs.ring} ", "$muted"), Span("not loaded", "$muted")
        case EngineState.UNLOADED:
            return Span(f"{glyphs.failed} ", "$status-failed"), Span("no model", "$status-failed")
        case EngineState.DRAINING if snapshot.changes_model:
            name = fit(safe_line(snapshot.next_model or ""), 24)
            return Span(f"{glyphs.ring} ", "$status-loading"), Span(
                f"changing to {name}", "$status-loading"
            )
        case EngineState.DRAINING | EngineState.STOPPED:
            return Span(f"{glyphs.ring} ", "$muted"), Span(snapshot.state.value, "$muted")
        case EngineState.READY:
            if generating:
                return Span(f"{glyphs.busy} ", "$status-busy"), Span("answering", "$status-busy")
            if is_busy(snapshot):
                return Span(f"{glyphs.busy} ", "$status-busy"), Span("working", "$status-busy")
            return Span(f"{glyphs.dot} ", "$status-ready"), Span("ready", "$status-ready")


def build_context(used: int, limit: int, glyphs: Glyphs, *, bar: int = 10) -> Line:
    """`ctx 812/8.2k ━━──── 10%`, in a warning colour from 80 % on; `ctx 10%` with a `bar` of 0 cells."""
    if limit <= 0:
        return (Span(f"{compact(used)} tok", "$muted"),)
    share = used / limit
    style = "$error" if share >= 0.95 else "$warning" if share >= 0.8 else "$primary"
    shown = Span(percent(share), style if share >= 0.8 else "$muted")
    if not bar:
        return (Span("ctx ", "$muted"), shown)
    full, empty = gauge(glyphs, share, bar)
    return (
        Span("ctx ", "$muted"),
        Span(f"{compact(used)}/{compact(limit)} "),
        Span(full, style),
        Span(f"{empty} ", "$panel"),
        shown,
    )


def build_status(snapshot: EngineSnapshot, facts: StatusFacts, glyphs: Glyphs, cells: int) -> Line:
    """Mode, state, context and speed as far as they leave room for two key hints, which fill the rest.

    For an earlier instant its time stands in place of the state.

    If the engine has failed and the reason fits, it stands in place of all but mode and state.
    """
    mode_style = (
        "bold $status-mode on $primary"
        if facts.mode == "PROMPT"
        else "bold $status-mode on $accent"
    )
    gap = Span("  ")
    left: list[Span] = [Span(f" {facts.mode} ", mode_style), gap]
    if facts.as_of is None:
        left += build_state(snapshot, facts.generating, glyphs)
    else:
        left.append(Span(f"as of {clock_time(facts.as_of)}", "bold $warning"))
    if facts.unsaved:
        left += [gap, Span(f"{glyphs.failed} not saved", "bold $error")]
    reason = _reason(snapshot)
    if reason and width(left) + cell_len(reason) + 3 <= cells:
        return justify([*left, gap, Span(reason, "$status-failed")], [], cells)
    limit = snapshot.model.context_length if snapshot.model else 0
    parts: list[list[Line]] = []  # of each part the forms, the longest first
    if limit:
        bars = (10, 0) if cells >= 100 else (5, 0)
        parts.append([build_context(facts.context_used, limit, glyphs, bar=bar) for bar in bars])
    if facts.generating:
        speed = f"{rate(snapshot.rates.decode_tokens_per_second)} tok/s"
        parts.append([(Span(speed, "bold $primary"),)])
    room = cells - wanted_cells(facts.hints) - _BESIDE_HINTS
    for forms in parts:
        fitting = (form for form in forms if width(left) + width(form) + 2 <= room)
        if form := next(fitting, None):
            left += [gap, *form]
    right = build_hints(facts.hints, cells - width(left) - _BESIDE_HINTS)
    return justify(left, right, cells)


def build_reason(
    snapshot: EngineSnapshot, status: Line, glyphs: Glyphs, cells: int, *, rows: int = 4
) -> list[Line]:
    """Why the engine has failed, in whole sentences; no row if it did not, or if `status` says it."""
    reason = _reason(snapshot)
    if not reason or reason in plain([status]):
        return []
    wrapped = wrap(reason, max(8, cells - 4), break_on_hyphens=False)
    if len(wrapped) > rows:
        wrapped[rows - 1 :] = [" ".join(wrapped[rows - 1 :])]
    return [
        (
            Span(f" {glyphs.failed if row == 0 else ' '} ", "$error"),
            Span(fit(text, cells - 4), "$error"),
        )
        for row, text in enumerate(wrapped)
    ]


def _reason(snapshot: EngineSnapshot) -> str:
    """Why there is no model, and what to do where that is known; empty if there is one."""
    error = safe_line(snapshot.last_error or "")
    match snapshot.state:
        case EngineState.UNLOADED if error:
            return f"{error} /model chooses another."
        case EngineState.UNLOADED if snapshot.on_demand:
            return ""
        case EngineState.UNLOADED:
            return "No model is loaded: /model chooses one."
        case EngineState.FAILED:
            return error
        case _:
            return ""


def build_too_small(cells: int) -> Line:
    """The only line on terminals smaller than 40×10."""
    return cut((Span("Pravāha needs 40×10 or more", "bold"),), cells)


def build_load_line(snapshot: EngineSnapshot, glyphs: Glyphs, cells: int) -> list[Line]:
    """Progress of loading, or the reason of its failure."""
    if snapshot.on_demand is not None and not snapshot.last_error:
        name = safe_line(snapshot.on_demand)
        return [(Span(f"{name} is not loaded: a message loads it.", "$muted"),)]
    if snapshot.state in _WITHOUT_MODEL:
        reason = _reason(snapshot) or "The engine stopped for an unknown reason."
        return [
            (Span(f"{' ' if row else glyphs.failed} ", "$error"), Span(text, "$error"))
            for row, text in enumerate(wrap_cells(reason, max(8, min(cells, _REASON_CELLS) - 2)))
        ]
    full, empty = gauge(glyphs, snapshot.loading_progress, max(4, min(cells, _GAUGE_CELLS) - 6))
    of = "" if snapshot.next_model is None else f" of {safe_line(snapshot.next_model)}"
    return [
        (Span(f"loading the weights{of}", "$muted"),),
        (
            Span(full, "$primary"),
            Span(empty, "$panel"),
            Span(f" {percent(snapshot.loading_progress).rjust(4)}", "bold"),
        ),
    ]


def build_timing(tokens: int, ttft_us: int | None, decode_us: int | None) -> str:
    """`64 tokens · 0.12 s to first token · 41.2 tok/s`, without the unknown parts."""
    parts = []
    if tokens:
        parts.append(f"{tokens} token{'' if tokens == 1 else 's'}")
    if ttft_us is not None:
        parts.append(f"{duration(ttft_us / 1e6)} to first token")
    if decode_us and tokens > 1:
        parts.append(f"{rate((tokens - 1) * 1e6 / decode_us)} tok/s")
    return " · ".join(parts)
