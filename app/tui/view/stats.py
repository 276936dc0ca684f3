"""The engine's figures as lines: the stats pane and the short form beside the avatar.

Every number is a field of `EngineSnapshot`, which `/metrics` exports too; sparklines show one-second
samples of those fields. While the engine is idle, the last rates are shown dimmed.
"""

from dataclasses import dataclass, field

from app.text.safe_text import safe_line
from app.tui.glyphs import Glyphs, gauge
from app.tui.numbers import compact, duration, percent, rate, size
from app.tui.view.model_lines import build_parameters, build_weights
from app.tui.view.spans import Line, Span, cut, fit, width
from app.tui.view.spark import SampleRing, build_spark
from engine.api.snapshot import EngineSnapshot, SessionCounts


@dataclass(slots=True)
class History:
    """Samples of the sparklines."""

    decode: SampleRing = field(default_factory=SampleRing)
    prefill: SampleRing = field(default_factory=SampleRing)
    kv: SampleRing = field(default_factory=SampleRing)

    def add(self, now: float, snapshot: EngineSnapshot) -> bool:
        """Sample the snapshot at local time `now`; True if a new second began."""
        busy = is_busy(snapshot)
        rates = snapshot.rates
        fresh = self.decode.add(now, rates.decode_tokens_per_second if busy else 0.0)
        self.prefill.add(now, rates.prefill_tokens_per_second if busy else 0.0)
        self.kv.add(now, snapshot.blocks.usage)
        return fresh


def is_busy(snapshot: EngineSnapshot) -> bool:
    """Whether requests run or wait, so that the snapshot's rates are current."""
    return snapshot.running > 0 or snapshot.waiting > 0


def build_vitals(
    snapshot: EngineSnapshot, history: History, glyphs: Glyphs, cells: int
) -> list[Line]:
    """Seven rows: the main figures, beside the avatar."""
    rates, fresh = snapshot.rates, is_busy(snapshot)
    value_style = "bold" if fresh else "$faint"
    spark = build_spark(history.decode.values, cells, 2, glyphs.spark)
    return [
        _pair(
            "tok/s",
            rate(rates.decode_tokens_per_second),
            cells,
            "bold $spark-decode" if fresh else "$faint",
        ),
        (Span(spark[0], "$spark-decode" if fresh else "$faint"),),
        (Span(spark[1], "$spark-decode" if fresh else "$faint"),),
        _pair("TTFT", duration(rates.ttft_p50), cells, value_style),
        _pair("ITL", duration(rates.itl_p50), cells, value_style),
        _pair("running", str(snapshot.running), cells, value_style),
        _pair("waiting", str(snapshot.waiting), cells, value_style),
    ]


def _pair(label: str, value: str, cells: int, style: str) -> Line:
    name = Span(label, "$muted")
    gap = max(1, cells - width((name,)) - width((Span(value),)))
    return (name, Span(" " * gap), Span(value, style))


def build_stats(
    snapshot: EngineSnapshot, history: History, glyphs: Glyphs, cells: int
) -> list[Line]:
    """The stats pane, `cells` wide: one column below 110, two above."""
    column = _column(cells)
    left = [
        cut(line, column)
        for line in (
            *_throughput(snapshot, history, glyphs, column),
            *_latency(snapshot, column),
        )
    ]
    right = [
        cut(line, column)
        for line in (
            *_memory(snapshot, history, glyphs, column),
            *_totals(snapshot, column),
            *_model(snapshot, column),
        )
    ]
    if cells < _TWO_COLUMNS:
        return [*left, *right]
    height = max(len(left), len(right))
    left += [()] * (height - len(left))
    right += [()] * (height - len(right))
    return [
        (*a, Span(" " * (column - width(a) + _GUTTER)), *b)
        for a, b in zip(left, right, strict=True)
    ]


_TWO_COLUMNS = 110
_GUTTER = 4
_LABEL = 18


def _column(cells: int) -> int:
    return cells if cells < _TWO_COLUMNS else (cells - _GUTTER) // 2


def _heading(text: str, note: str, cells: int) -> Line:
    rule = max(0, cells - len(text) - len(note) - 2)
    return (Span(text, "bold $primary"), Span(f" {'─' * rule} ", "$panel"), Span(note, "$faint"))


def _row(label: str, value: str, note: str = "", style: str = "bold") -> Line:
    return (
        Span(label.ljust(_LABEL), "$muted"),
        Span(value.rjust(9), style),
        Span(f"  {note}" if note else "", "$faint"),
    )


def _throughput(
    snapshot: EngineSnapshot, history: History, glyphs: Glyphs, cells: int
) -> list[Line]:
    rates, fresh = snapshot.rates, is_busy(snapshot)
    style = "bold" if fresh else "$faint"
    note = "now" if fresh else "idle: last figures"
    lines: list[Line] = [_heading("Throughput", note, cells)]
    for label, value, ring, color in (
        ("decode", rates.decode_tokens_per_second, history.decode, "$spark-decode"),
        ("prefill", rates.prefill_tokens_per_second, history.prefill, "$spark-prefill"),
    ):
        lines.append(_row(label, rate(value), "tok/s", f"bold {color}" if fresh else "$faint"))
        spark = build_spark(ring.values, cells, 3, glyphs.spark)
        lines += [(Span(row, color if fresh else "$faint"),) for row in spark]
    lines += [
        _axis(cells),
        _row("running", str(snapshot.running), "requests", style),
        _row("waiting", str(snapshot.waiting), "requests", style),
        _row(
            "last step", duration(snapshot.last_step.seconds or None), _step_note(snapshot), style
        ),
        (),
    ]
    return lines


def _axis(cells: int) -> Line:
    left, right = f"{min(cells, 120)} s ago", "now"
    return (Span(left + " " * max(0, cells - len(left) - len(right)) + right, "$faint"),)


def _step_note(snapshot: EngineSnapshot) -> str:
    step = snapshot.last_step
    return f"{step.prefill_tokens} prefill + {step.decode_tokens} decode tokens"


def _latency(snapshot: EngineSnapshot, cells: int) -> list[Line]:
    rates = snapshot.rates
    return [
        _heading("Latency", "last 512 samples", cells),
        (Span(" " * _LABEL), Span("p50".rjust(9), "$faint"), Span("p95".rjust(11), "$faint")),
        _percentiles("first token", rates.ttft_p50, rates.ttft_p95),
        _percentiles("between tokens", rates.itl_p50, rates.itl_p95),
        (),
    ]


def _percentiles(label: str, p50: float | None, p95: float | None) -> Line:
    return (
        Span(label.ljust(_LABEL), "$muted"),
        Span(duration(p50).rjust(9), "bold"),
        Span(duration(p95).rjust(11), "bold"),
    )


def _memory(snapshot: EngineSnapshot, history: History, glyphs: Glyphs, cells: int) -> list[Line]:
    blocks = snapshot.blocks
    full, empty = gauge(glyphs, blocks.usage, cells)
    spark = build_spark(history.kv.values, cells, 1, glyphs.spark)[0]
    lines: list[Line] = [
        _heading("KV cache", f"{size(blocks.total * blocks.block_bytes)} pool", cells),
        (Span(full, "$kv-active"), Span(empty, "$panel")),
        (Span(spark, "$spark-kv"),),
        _row(
            "active",
            compact(blocks.active),
            f"of {compact(blocks.total)} blocks, {percent(blocks.usage)}",
        ),
        _row("cached", compact(blocks.cached), "kept for reuse"),
        _row("free", compact(blocks.free), f"{blocks.block_size} tokens a block"),
    ]
    if blocks.swapped:
        lines.append(_row("swapped", compact(blocks.swapped), "in the swap tier"))
    states = snapshot.states
    if states.total:
        kept = (
            f"active of {states.total}, {states.checkpoints} kept, {size(states.slot_bytes)} each"
        )
        lines.append(_row("states", compact(states.active), kept))
    windows = snapshot.windows
    if windows.total:
        kept = f"active of {windows.total} blocks, {windows.windows} kept"
        lines.append(_row("windows", compact(windows.active), kept))
    return [*lines, *_kept_sessions(snapshot.sessions), ()]


def _kept_sessions(sessions: SessionCounts) -> list[Line]:
    """The sessions for which blocks are kept, and why blocks of sessions were computed again."""
    lines: list[Line] = []
    if sessions.expected or sessions.held_requests:
        held = f"{sessions.held_requests} held, " if sessions.held_requests else ""
        lines.append(_row("sessions", compact(sessions.expected), f"{held}expected back"))
    lost = {
        "away": sessions.lost_away,
        "held": sessions.lost_held,
        "no space": sessions.lost_space,
    }
    if any(lost.values()):
        reasons = ", ".join(f"{count} {reason}" for reason, count in lost.items() if count)
        lines.append(_row("lost", compact(sum(lost.values())), reasons))
    return lines


def _totals(snapshot: EngineSnapshot, cells: int) -> list[Line]:
    totals = snapshot.totals
    finished = ", ".join(
        f"{count} {safe_line(reason)}" for reason, count in sorted(totals.finished.items()) if count
    )
    lines = [
        _heading("Since start", f"step {snapshot.step}", cells),
        _row("prompt tokens", compact(totals.prompt_tokens)),
        _row("generated tokens", compact(totals.generation_tokens)),
        _row("steps", compact(totals.steps)),
        _row("finished", compact(sum(totals.finished.values())), finished),
    ]
    if totals.preemptions:
        lines.append(_row("preemptions", compact(totals.preemptions)))
    if totals.prefix_cache_queries:
        share = totals.prefix_cache_hits / totals.prefix_cache_queries
        lines.append(_row("prefix hits", percent(share), "of queried tokens"))
    if totals.external_prefix_cache_hits:
        share = totals.external_prefix_cache_hits / totals.prefix_cache_queries
        lines.append(_row("swap hits", percent(share), "of queried tokens"))
    return [*lines, ()]


def _model(snapshot: EngineSnapshot, cells: int) -> list[Line]:
    model = snapshot.model
    if model is None:
        return []
    rows = (
        ("name", safe_line(model.name)),
        (
            "architecture",
            f"{safe_line(model.architecture)}, {build_parameters(model)}",
        ),
        ("weights", f"{safe_line(model.weight_format)}, {build_weights(model)}"),
        ("context", f"{model.context_length} tokens, KV {safe_line(model.kv_dtype)}"),
        (
            "executor",
            f"{safe_line(model.executor)}, {safe_line(model.dispatch)}, {model.threads} threads",
        ),
        *(() if model.draft_model is None else (("drafts", safe_line(model.draft_model)),)),
    )
    room = cells - _LABEL
    return [
        _heading("Model", "", cells),
        *((Span(label.ljust(_LABEL), "$muted"), Span(fit(value, room))) for label, value in rows),
    ]
