"""Sentences about the KV of a path: what was pinned, computed or found, in the engine's figures."""

from collections import Counter
from collections.abc import Sequence

from app.tui.numbers import duration
from engine.api.events import PrefixPinned, PrefixUnpinned, RequestFinished
from engine.api.request import FinishReason
from engine.api.residency import Residency


def _blocks(count: int) -> str:
    return f"{count} block" if count == 1 else f"{count} blocks"


def build_pinned(event: PrefixPinned, block_size: int) -> str:
    """What a pin covers."""
    if not event.blocks:
        return "Nothing is pinned: no full block of this path is in the pool. w computes it."
    return (
        f"Pinned {_blocks(event.blocks)}: {event.blocks * block_size} of {event.tokens} tokens "
        "stay in the pool."
    )


def build_unpinned(event: PrefixUnpinned) -> str:
    """That a pin ended, and why."""
    if event.dropped:
        return f"A pin of {_blocks(event.blocks)} was dropped: a request needed the space."
    return f"Unpinned {_blocks(event.blocks)}."


def build_warmed(event: RequestFinished, cached: int) -> str:
    """How much was computed."""
    if event.reason in (FinishReason.ERROR, FinishReason.ABORT):
        return f"The KV was not computed: {event.error or 'the request was stopped'}."
    computed = event.prompt_tokens - cached
    seconds = event.time - event.timings.queued
    return (
        f"Computed {computed} of {event.prompt_tokens} tokens in {duration(seconds)}; "
        f"{cached} were in the pool."
    )


def build_shown(found: Residency) -> str:
    """How much of a path is in the pool and in the swap tier."""
    text = (
        f"{found.pool_tokens} of {found.tokens} tokens are in the KV pool, "
        f"in {_blocks(len(found.blocks))}"
    )
    return f"{text}; {found.swap_tokens} in the swap tier." if found.swap_tokens else f"{text}."


def build_shared(found: Sequence[Residency], block_size: int) -> str:
    """What the paths to several marked messages share of the pool, and what each has of its own."""
    paths = [set(one.blocks) for one in found]
    times = Counter(block for path in paths for block in path)
    shared = sum(count > 1 for count in times.values())
    own = [sum(times[block] == 1 for block in path) for path in paths]
    listed = ", ".join(str(count) for count in own[:-1]) + f" and {own[-1]}"
    which = "Both paths" if len(paths) == 2 else f"The {len(paths)} paths"
    return (
        f"{which} share {_blocks(shared)} of the KV pool ({shared * block_size} tokens); "
        f"{listed} blocks belong to one of them only."
    )
