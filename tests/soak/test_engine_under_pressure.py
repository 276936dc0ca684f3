"""Half an hour of random traffic against a pool of half the blocks it needs.

Requests with shared and private prefixes are submitted, cancelled, forked and preempted; their blocks
are swapped out and in. Asserted: no stall, no block leak, constant resident memory, and the same
greedy text for the same prompt.

`PRAVAHA_SOAK_MINUTES` (30) is its duration. Figures are printed; run it with `-s` to see them.
"""

import json
import os
import random
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from engine.api.config import EngineConfig
from engine.api.errors import InvalidRequest
from engine.api.request import FinishReason, Request, SamplingParams
from engine.runtime.engine import AsyncPravahaEngine
from engine.runtime.request_handle import RequestHandle
from tests.parity.real_engine import block_bytes

MINUTES = float(os.environ.get("PRAVAHA_SOAK_MINUTES", "30"))
WARM_UP_SHARE = 0.15
STREAMS = 48
POOL_TOKENS = 3_328
"""Half of what the streams want: 48 with about 24 private prompt tokens and, on average, half of 192
new ones, and 8 shared beginnings of 96."""
BLOCK_SIZE = 32
SWAP_TOKENS = 4 * POOL_TOKENS
FAMILIES, FAMILY_TOKENS = 8, 96
TAIL_TOKENS = (1, 48)
NEW_TOKENS = (1, 384)
STALL_S = 120.0
ALLOWED_GROWTH = 32 << 20
"""Bytes of resident memory between the end of the warm-up and the end."""
PATIENCE_S = 0.05

pytestmark = pytest.mark.soak


def resident_bytes() -> int:
    """Resident memory of this process without the swap file's pages, which the kernel can reclaim."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("no RssAnon")


@dataclass
class Live:
    """One request in flight.

    Attributes:
        prompt: its prompt; None for sampled and forked requests, whose text is not compared.
        most_tokens: tokens of prompt and answer if it is not cancelled.
        cancel_after: tokens after which it is cancelled.
        fork_after: tokens after which it is forked.
    """

    handle: RequestHandle
    prompt: tuple[int, ...] | None
    most_tokens: int
    cancel_after: int | None
    fork_after: int | None
    tokens: list[int] = field(default_factory=list)


class Traffic:
    """Keeps `STREAMS` requests in flight and checks every answer."""

    def __init__(self, engine: AsyncPravahaEngine) -> None:
        self._engine = engine
        self._draw = random.Random(11)
        self._families = [self._some_tokens(FAMILY_TOKENS) for _ in range(FAMILIES)]
        self._prompts = [
            self._draw.choice(self._families) + self._some_tokens(self._draw.randint(*TAIL_TOKENS))
            for _ in range(64)
        ]
        self._known: dict[tuple[int, ...], list[int]] = {}
        self.live: list[Live] = []
        self.counts: Counter[str] = Counter()
        self._heard = time.monotonic()

    def _some_tokens(self, count: int) -> tuple[int, ...]:
        return tuple(self._draw.randrange(100, 40_000) for _ in range(count))

    def turn(self) -> None:
        """Submit up to `STREAMS` requests, read new tokens, cancel and fork as planned."""
        while len(self.live) < STREAMS:
            self.live.append(self._ask())
        for live in list(self.live):
            batch = live.handle.drain()
            if batch is None:
                continue
            self._heard = time.monotonic()
            live.tokens += batch.token_ids
            if batch.finish_reason is not None:
                self.live.remove(live)
                self._check(live, batch.finish_reason, batch.error)
            elif live.cancel_after is not None and len(live.tokens) >= live.cancel_after:
                live.cancel_after = None
                live.handle.abort()
            elif live.fork_after is not None and len(live.tokens) >= live.fork_after:
                live.fork_after = None
                self._fork(live)
        silent = time.monotonic() - self._heard
        assert silent < STALL_S, f"nothing came for {silent:.0f} s: {self._engine.snapshot()}"

    def wanted_tokens(self) -> int:
        """Tokens of KV that the requests in flight take on average until they end, each running."""
        private = (
            (len(live.handle.request.prompt_ids) + live.most_tokens) / 2 - FAMILY_TOKENS
            for live in self.live
        )
        return int(sum(private)) + FAMILIES * FAMILY_TOKENS

    def _ask(self) -> Live:
        """A greedy request with a known prompt, or a sampled one with a new prompt."""
        draw = self._draw
        greedy = draw.random() < 0.6
        prompt = (
            draw.choice(self._prompts)
            if greedy
            else draw.choice(self._families) + self._some_tokens(draw.randint(*TAIL_TOKENS))
        )
        new = draw.randint(*NEW_TOKENS)
        sampling = SamplingParams(
            temperature=0.0 if greedy else 0.8, max_tokens=new, ignore_eos=True
        )
        handle = self._engine.submit(Request(prompt, sampling))
        return Live(
            handle,
            prompt if greedy else None,
            len(prompt) + new,
            draw.randint(0, new) if draw.random() < 0.25 else None,
            draw.randint(1, new) if draw.random() < 0.15 else None,
        )

    def _fork(self, parent: Live) -> None:
        try:
            children = self._engine.fork(parent.handle.request_id, n=2)
        except InvalidRequest:
            return  # it ended meanwhile
        self.counts["forks"] += len(children)
        self.live += [Live(child, None, parent.most_tokens, None, None) for child in children]

    def _check(self, live: Live, reason: FinishReason, error: str | None) -> None:
        self.counts[reason.value] += 1
        assert reason is not FinishReason.ERROR, error
        if live.prompt is None:
            return
        known = self._known.setdefault(live.prompt, live.tokens)
        common = min(len(known), len(live.tokens))
        assert known[:common] == live.tokens[:common], "the same prompt got another greedy answer"
        self.counts["compared tokens"] += common
        if len(live.tokens) > len(known):
            self._known[live.prompt] = live.tokens


def test_engine_under_pressure(demo_model, tmp_path):
    token_bytes = block_bytes(demo_model, block_size=BLOCK_SIZE) // BLOCK_SIZE
    engine = AsyncPravahaEngine(
        EngineConfig(
            model=demo_model,
            name="smollm2",
            max_num_seqs=STREAMS,
            max_model_len=1024,
            block_size=BLOCK_SIZE,
            kv_cache_bytes=POOL_TOKENS * token_bytes,
            swap_bytes=SWAP_TOKENS * token_bytes,
            swap_dir=tmp_path,
        )
    )
    engine.start()
    try:
        engine.wait_ready()
        assert engine.snapshot().blocks.total * BLOCK_SIZE == POOL_TOKENS
        traffic = Traffic(engine)
        begin = time.monotonic()
        end = begin + 60 * MINUTES
        warm = begin + WARM_UP_SHARE * (end - begin)
        resident: list[int] = []
        wanted: list[int] = []
        while (now := time.monotonic()) < end:
            traffic.turn()
            if now >= warm and len(resident) < 2 + (now - warm) / 10:
                resident.append(resident_bytes())
                wanted.append(traffic.wanted_tokens())
            time.sleep(PATIENCE_S)
        totals, swap = engine.snapshot().totals, engine.snapshot().swap
        for live in traffic.live:
            live.handle.abort()
        for live in traffic.live:
            live.handle.wait_result(STALL_S)
        while engine.snapshot().running:
            time.sleep(PATIENCE_S)
        blocks = engine.snapshot().blocks
    finally:
        engine.shutdown()
    minutes = (time.monotonic() - begin) / 60
    print(
        json.dumps(
            {
                "minutes": round(minutes, 1),
                "wanted by the pool's tokens": round(sum(wanted) / len(wanted) / POOL_TOKENS, 2),
                "steps": totals.steps,
                "generated tokens": totals.generation_tokens,
                "preemptions": totals.preemptions,
                "prefix hit rate": round(totals.prefix_cache_hits / totals.prefix_cache_queries, 3),
                "copied blocks": totals.copied_blocks,
                "swapped blocks out, in": [swap.swapped_out, swap.swapped_in],
                "resident MiB": [resident[0] >> 20, resident[-1] >> 20],
                **traffic.counts,
            }
        )
    )
    assert blocks.active == 0
    assert sum(wanted) / len(wanted) > 1.8 * POOL_TOKENS
    assert totals.preemptions > 0, "there was no pressure"
    assert swap.swapped_in > 0
    assert traffic.counts["forks"] > 0
    assert traffic.counts["compared tokens"] > 0
    assert resident[-1] - resident[0] < ALLOWED_GROWTH
