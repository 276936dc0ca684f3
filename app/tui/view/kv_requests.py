"""The request table under the maximised KV map."""

from collections.abc import Sequence

from app.tui.glyphs import Glyphs
from app.tui.numbers import NONE, compact, duration
from app.tui.view.kv_cells import Cell
from app.tui.view.kv_events import ID_CELLS, request_span
from app.tui.view.spans import Line, Span, cut
from engine.api.request_status import RequestState, RequestStatus

_HEAD = (
    f"  {'request':<{ID_CELLS}}  {'state':<9} {'prompt':>6} {'cached':>6} {'computed':>8} {'tokens':>6}"
    f" {'blocks':>6} {'TTFT':>8} {'ITL':>8} {'priority':>8}"
    f" {'deadline':>10}"
)
_STYLES = {
    RequestState.PREFILL: "$spark-prefill",
    RequestState.DECODE: "$spark-decode",
    RequestState.PREEMPTED: "$warning",
    RequestState.SWAPPED: "$warning",
}


def build_request_table(
    requests: Sequence[RequestStatus],
    own: str | None,
    lit: str | None,
    glyphs: Glyphs,
    *,
    now: float,
    rows: int,
    cells: int,
) -> list[Line]:
    """A heading and one row for each request, as many as fit; none without requests.

    Args:
        requests: the live requests, in the order to show.
        own: request of the open conversation, or None.
        lit: the selected request, or None.
        glyphs: the character table.
        now: the instant that is shown, on the clock of `EngineSnapshot.time`.
        rows: maximum number of rows, the heading included.
        cells: width of a row.
    """
    if not requests or rows < 2:
        return []
    shown = requests[: rows - 1]
    if len(requests) > len(shown):
        shown = requests[: rows - 2]
    lines = [cut((Span(_HEAD, "$faint"),), cells)]
    lines += [cut(_row(one, own, lit, glyphs, now), cells) for one in shown]
    if len(requests) > len(shown):
        lines.append((Span(f"  and {len(requests) - len(shown)} more", "$faint"),))
    return lines


def _row(one: RequestStatus, own: str | None, lit: str | None, glyphs: Glyphs, now: float) -> Line:
    mark = Span("  ")
    if one.request_id == lit:
        mark = Span(f"{glyphs.kv[Cell.LIT]} ", "$kv-lit")
    elif one.request_id == own:
        mark = Span(f"{glyphs.current} ", "$kv-own")
    name = request_span(one.request_id)
    figures = (
        f" {compact(one.prompt_tokens):>6} {compact(one.cached_tokens):>6}"
        f" {compact(one.computed_tokens):>8} {compact(one.generated_tokens):>6} {one.blocks:>6}"
        f" {duration(one.ttft):>8} {duration(one.itl):>8} {_priority(one):>8} {_deadline(one, now):>10}"
    )
    return (
        mark,
        name._replace(text=f"{name.text:<{ID_CELLS}}  "),
        Span(f"{one.state.value:<9}", _STYLES.get(one.state, "$muted")),
        Span(figures),
    )


def _priority(one: RequestStatus) -> str:
    return str(one.priority) if one.priority else NONE


def _deadline(one: RequestStatus, now: float) -> str:
    """When the first token is due, or whether it was in time."""
    if one.deadline is None:
        return NONE
    if one.ttft is not None:
        return "met" if one.queued_at + one.ttft <= one.deadline else "missed"
    left = one.deadline - now
    return f"in {duration(left)}" if left > 0 else "missed"
