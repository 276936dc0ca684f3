"""Engine events as rows of text: a time, a word and the figures."""

from collections.abc import Sequence

from app.text.safe_text import safe_line
from app.tui.numbers import duration
from app.tui.view.kv_colors import hue_of
from app.tui.view.spans import Line, Span, cut
from engine.api.events import (
    BlocksEvicted,
    BlocksSwappedIn,
    BlocksSwappedOut,
    Event,
    PrefixHit,
    PrefixPinned,
    PrefixUnpinned,
    RequestFinished,
    RequestForked,
    RequestPreempted,
    RequestScheduled,
    StepFailed,
)

ID_CELLS = 8
NARROW = 60
"""Cells below which prefix hits and forks are told in a short form."""
_SHORT_ID_CELLS = 4


def short_id(request_id: str) -> str:
    """The part of a request's id that tells it from others, safe to draw."""
    return safe_line(request_id.removeprefix("req-").removeprefix("pin-"))[:ID_CELLS]


def request_span(request_id: str) -> Span:
    """A request's short id in its hue."""
    return Span(short_id(request_id), f"$kv-hue-{hue_of(request_id)}")


def is_shown(event: Event) -> bool:
    """Whether the strip shows events of this type: those about blocks and rows."""
    return _word(event) is not None


def build_event_strip(events: Sequence[Event], began: float, rows: int, cells: int) -> list[Line]:
    """The last `rows` events, newest first.

    Args:
        events: the events, oldest first, all of which `is_shown`.
        began: the instant from which times are counted.
        rows: maximum number of rows.
        cells: width of a row.
    """
    return [cut(_row(event, began, cells < NARROW), cells) for event in reversed(events[-rows:])]


def _row(event: Event, began: float, narrow: bool) -> Line:
    word, style = _word(event) or ("", "")
    seconds = max(0.0, event.time - began)
    time = f"{int(seconds) // 60}:{seconds % 60:04.1f} "
    rest = (
        _short(event) if narrow and isinstance(event, PrefixHit | RequestForked) else _rest(event)
    )
    return (Span(time, "$faint"), Span(f"{word:<8} ", style), *rest)


def _short(event: PrefixHit | RequestForked) -> Line:
    """`2 blk +1 copied`, or `32 tok 2 blk`: blocks shared and copied, tokens not computed."""
    name = request_span(event.request_id)
    blocks = f"{event.blocks} blk"
    figures = (
        f"{event.tokens} tok {blocks}" if event.copied_block is None else f"{blocks} +1 copied"
    )
    return (name._replace(text=name.text[:_SHORT_ID_CELLS]), Span(f" {figures}", "$muted"))


def _word(event: Event) -> tuple[str, str] | None:
    match event:
        case RequestScheduled(resumed=True):
            return "resume", "$primary"
        case RequestScheduled():
            return "admit", "$primary"
        case PrefixHit():
            return "hit", "$success"
        case RequestForked():
            return "fork", "$kv-shared"
        case BlocksEvicted():
            return "evict", "$warning"
        case BlocksSwappedOut():
            return "swap out", "$muted"
        case BlocksSwappedIn():
            return "swap in", "$muted"
        case PrefixPinned():
            return "pin", "$kv-pinned"
        case PrefixUnpinned():
            return "unpin", "$kv-pinned"
        case RequestPreempted():
            return "preempt", "$warning"
        case RequestFinished():
            return "finish", "$muted"
        case StepFailed():
            return "failed", "$error"
    return None


def _rest(event: Event) -> Line:
    match event:
        case PrefixHit():
            return (request_span(event.request_id), Span(f"  {_reused(event)}", "$muted"))
        case RequestForked():
            return (
                request_span(event.request_id),
                Span(" from ", "$faint"),
                request_span(event.parent_id),
                Span(f"  {_reused(event)}", "$muted"),
            )
        case BlocksEvicted():
            lost = f", {event.dropped} not saved" if event.dropped else ""
            return (Span(f"{_blocks(event.blocks)}{lost}", "$muted"),)
        case BlocksSwappedOut():
            return (Span(_blocks(event.blocks), "$muted"),)
        case BlocksSwappedIn():
            return (request_span(event.request_id), Span(f"  {_blocks(event.blocks)}", "$muted"))
        case PrefixPinned():
            return (Span(f"{_blocks(event.blocks)} of {event.tokens} tokens", "$muted"),)
        case PrefixUnpinned():
            why = ", needed by a request" if event.dropped else ""
            return (Span(f"{_blocks(event.blocks)}{why}", "$muted"),)
        case RequestPreempted():
            how = "swapped" if event.swapped else "recomputed later"
            return (
                request_span(event.request_id),
                Span(f"  {event.num_tokens} tokens, {how}", "$muted"),
            )
        case RequestFinished():
            return (
                request_span(event.request_id),
                Span(f"  {event.reason.value}, {event.output_tokens} tokens", "$muted"),
                Span(f" in {duration(event.time - event.timings.queued)}", "$faint"),
            )
        case StepFailed():
            return (Span(safe_line(event.error), "$error"),)
        case RequestScheduled():
            return (request_span(event.request_id),)
    return ()


def _reused(event: PrefixHit | RequestForked) -> str:
    copied = "" if event.copied_block is None else " + 1 copied"
    return f"{event.tokens} tokens, {_blocks(event.blocks)} shared{copied}"


def _blocks(count: int) -> str:
    return f"{count} block" if count == 1 else f"{count} blocks"
