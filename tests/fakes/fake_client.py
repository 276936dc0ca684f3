"""An engine without threads for tests of the screen; only `step(n)` advances it.

Answers are scripted; blocks, counters and rates follow from the requests and answers, so that every
figure on the screen can be predicted.
"""

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

import numpy as np

from engine.api.block_detail import BlockDetail, BlockOwner
from engine.api.request import FinishReason, Request, TokenBatch
from engine.api.request_status import RequestState, RequestStatus
from engine.api.snapshot import (
    BlockCounts,
    BlockMap,
    BlockState,
    EngineSnapshot,
    EngineState,
    ModelInfo,
    Rates,
    StepStats,
    Totals,
)
from engine.api.step_view import STEP_ENTRIES, PlannedRow, PlannedStep, RowPhase, StepEntry
from tests.fakes.chat_toys import CHATML, SEEING, ToyClient

MODEL = ModelInfo(
    name="fake-135m",
    architecture="llama",
    parameters=134_515_008,
    weight_format="Q4_1",
    kv_dtype="f16",
    context_length=8192,
    vocab_size=49_152,
    weight_bytes=98 * 1024**2,
    executor="native",
    dispatch="avx2",
    threads=2,
)
BLOCK_SIZE = 16
BLOCK_BYTES = 720 * 1024
RATES = Rates(
    decode_tokens_per_second=42.0,
    prefill_tokens_per_second=512.0,
    ttft_p50=0.12,
    ttft_p95=0.31,
    itl_p50=0.021,
    itl_p95=0.034,
)


@dataclass
class _Running:
    pieces: deque[str]
    tokens: int
    cached: int
    blocks: list[int] = field(default_factory=list)


class FakeClient(ToyClient):
    """`EngineClient` on strings: each step delivers the next piece of every running request.

    Args:
        answers: answers to the next requests, in order; each a text, split into
            words, or the pieces themselves. A request beyond them never ends by itself.
        blocks: size of the KV pool.
        sees_images: whether the model takes images.

    Attributes:
        answers: answers not given yet; a test may add to them.
        steps: steps executed.
        time: the engine's clock, seconds; a step takes 0.02.
    """

    def __init__(
        self,
        *answers: str | Iterable[str],
        blocks: int = 1024,
        state: EngineState = EngineState.READY,
        sees_images: bool = False,
    ) -> None:
        super().__init__(SEEING if sees_images else CHATML, state=state)
        self.answers = deque(answers)
        self.steps = 0
        self.time = 100.0
        self.progress = 1.0 if state is EngineState.READY else 0.0
        self.error: str | None = None
        self.model = replace(MODEL, sees_images=sees_images)
        self.rates = Rates()
        self.waiting = 0
        self._running: dict[str, _Running] = {}
        self._finished: dict[str, int] = {}
        self._counts = {"prompt_tokens": 0, "generation_tokens": 0}
        self._last_step = StepStats()
        self._wakers: list[Callable[[], None]] = []
        self._state = np.zeros(blocks, np.uint8)
        self._fill = np.zeros(blocks, np.uint8)
        self._pinned = np.zeros(blocks, np.bool_)
        self._last_used = np.full(blocks, np.nan)
        self._epoch = 0
        self._steps: deque[StepEntry] = deque(maxlen=STEP_ENTRIES)
        self._plan: PlannedStep | None = None
        self._forked = 0

    # Called by tests.

    def step(self, count: int = 1) -> None:
        """Execute steps: every running request gets its next piece or finishes."""
        for _ in range(count):
            self.steps += 1
            self.time += 0.02
            rows = len(self._running)
            for index, request in enumerate(self.requests):
                if request.request_id in self._running:
                    self._advance(index, request)
            self._record_step(rows)
            if rows:
                self.rates = RATES
                self._last_step = StepStats(0.02, decode_tokens=rows, rows=rows)
        self.wake()

    def finish(self) -> None:
        """Step until no request with an answer is left."""
        while any(one.pieces for one in self._running.values()):
            self.step()
        self.step()

    def load(self, progress: float) -> None:
        """Set the loaded share of the weights; at 1 the engine is ready."""
        self.progress = progress
        self.state = EngineState.READY if progress >= 1 else EngineState.LOADING
        self.wake()

    def begin_change(self, name: str) -> None:
        """Free the old model and begin to load `name`, as the engine does once requests have finished."""
        self.next_model, self.progress, self.state = name, 0.0, EngineState.LOADING
        self.error = None
        self.wake()

    def finish_change(self) -> None:
        """Finish loading the next model."""
        assert self.next_model is not None
        self.model = replace(self.model, name=self.next_model)
        self.next_model = None
        self.load(1.0)

    def fail_change(self, error: str) -> None:
        """Let the load of the next model fail."""
        self.next_model, self.error, self.state = None, error, EngineState.UNLOADED
        self.wake()

    def fail(self, error: str) -> None:
        """Put the engine into the failed state."""
        self.state, self.error = EngineState.FAILED, error
        self.wake()

    def wake(self) -> None:
        """What the engine does after a mailbox was filled."""
        for callback in self._wakers:
            callback()

    # EngineClient.

    def submit(self, request: Request) -> str:
        super().submit(request)
        answer = self.answers.popleft() if self.answers else ()
        pieces = _words(answer) if isinstance(answer, str) else list(answer)
        self._running[request.request_id] = _Running(
            deque(pieces), len(request.prompt_ids), self._forked
        )
        self._counts["prompt_tokens"] += len(request.prompt_ids)
        self._hold(self._running[request.request_id])
        return request.request_id

    def fork(self, request_id, *, at=None, n=1, sampling=None) -> list[str]:
        """As the engine's: all of the prompt but its last token is found in the cache."""
        self._forked = (at or 1) - 1
        try:
            return super().fork(request_id, at=at, n=n, sampling=sampling)
        finally:
            self._forked = 0

    def drain(self, request_id: str) -> TokenBatch | None:
        batch = super().drain(request_id)
        while batch is not None and (more := super().drain(request_id)) is not None:
            batch = replace(
                more,
                token_ids=batch.token_ids + more.token_ids,
                text=batch.text + more.text,
                logprobs=batch.logprobs + more.logprobs,
                top_logprobs=batch.top_logprobs + more.top_logprobs,
                drafted=batch.drafted + more.drafted,
            )
        return batch

    def snapshot(self) -> EngineSnapshot:
        active = int((self._state == BlockState.ACTIVE).sum())
        cached = int((self._state == BlockState.CACHED).sum())
        total = len(self._state)
        ready = self.state in (EngineState.READY, EngineState.DRAINING)
        return EngineSnapshot(
            step=self.steps,
            time=self.time,
            state=self.state,
            model=self.model if ready else None,
            running=len(self._running),
            waiting=self.waiting,
            blocks=BlockCounts(
                total=total if ready else 0,
                free=total - active - cached if ready else 0,
                active=active,
                cached=cached,
                block_size=BLOCK_SIZE,
                block_bytes=BLOCK_BYTES,
            ),
            last_step=self._last_step,
            scheduling=self.scheduling,
            totals=Totals(**self._counts, steps=self.steps, finished=dict(self._finished)),
            rates=self.rates,
            loading_progress=self.progress,
            next_model=self.next_model,
            last_error=self.error,
            last_error_time=None if self.error is None else self.time,
        )

    def blocks(self, since: int) -> BlockMap | None:
        if since >= self._epoch or self.state is not EngineState.READY:
            return None
        total = len(self._state)
        owner = np.full(total, -1, np.int32)
        first = np.full(total, -1, np.int32)
        for index, running in enumerate(self._running.values()):
            owner[running.blocks] = index
            first[running.blocks] = np.arange(len(running.blocks)) * BLOCK_SIZE
        held = [block for one in self._running.values() for block in one.blocks]
        return BlockMap(
            epoch=self._epoch,
            state=self._state.copy(),
            refcount=(owner >= 0).astype(np.uint16),
            fill=self._fill.copy(),
            owner=owner,
            owners=tuple(self._running),
            first_token=first,
            pinned=self._pinned.copy(),
            last_used=self._last_used.copy(),
            held_blocks=np.array(held, np.int32),
            held_by=np.array(
                [at for at, one in enumerate(self._running.values()) for _ in one.blocks], np.int32
            ),
        )

    def block(self, block: int) -> BlockDetail | None:
        owners = tuple(
            BlockOwner(request_id, one.blocks.index(block) * BLOCK_SIZE)
            for request_id, one in self._running.items()
            if block in one.blocks
        )
        fill = int(self._fill[block])
        return BlockDetail(
            block=block,
            state=BlockState(int(self._state[block])),
            refcount=len(owners),
            pins=int(self._pinned[block]),
            owners=owners,
            fill=fill,
            token_ids=tuple(range(fill)),
            text=f"text of block {block}" if fill else "",
            first_token=owners[0].first_token if owners else None,
            last_used=None if np.isnan(self._last_used[block]) else float(self._last_used[block]),
            parent=None,
            children=(),
        )

    def request_table(self) -> tuple[RequestStatus, ...]:
        prompts = {request.request_id: len(request.prompt_ids) for request in self.requests}
        return tuple(
            _status(request_id, prompts[request_id], one)
            for request_id, one in self._running.items()
        )

    def recent_steps(self, since: int) -> tuple[StepEntry, ...]:
        return tuple(step for step in self._steps if step.number > since)

    def planned_step(self) -> PlannedStep | None:
        return self._plan

    def on_wake(self, callback: Callable[[], None]) -> None:
        self._wakers.append(callback)

    # Internal.

    def _advance(self, index: int, request: Request) -> None:
        running = self._running[request.request_id]
        if request.request_id in self.cancelled:
            self._end(index, request, FinishReason.ABORT)
        elif running.pieces:
            piece = running.pieces.popleft()
            running.tokens += len(self.write(piece, at=index, cached=running.cached))
            self._counts["generation_tokens"] += 1
            self._hold(running)
            if not running.pieces:
                self._end(index, request, FinishReason.STOP)

    def _end(self, index: int, request: Request, reason: FinishReason) -> None:
        running = self._running.pop(request.request_id)
        eos = reason is FinishReason.STOP
        self.write("", eos=eos, finish=reason, at=index, cached=running.cached)
        self._finished[reason] = self._finished.get(reason, 0) + 1
        held = running.blocks
        self._state[held] = BlockState.CACHED
        self._last_used[held] = self.time
        self._epoch += 1

    def _record_step(self, rows: int) -> None:
        entry = StepEntry(self.steps, self.time - 0.02, 0.02, 0, rows, 0, rows)
        self._steps.append(entry)
        self._plan = PlannedStep(
            self.steps,
            entry.started,
            512,
            None,
            tuple(
                PlannedRow(request_id, RowPhase.DECODE, 1, 0, one.tokens)
                for request_id, one in self._running.items()
            ),
        )

    def _hold(self, running: _Running) -> None:
        wanted = -(-running.tokens // BLOCK_SIZE)
        free = np.flatnonzero(self._state == BlockState.FREE)
        cached = np.flatnonzero(self._state == BlockState.CACHED)
        oldest = cached[np.argsort(self._last_used[cached], kind="stable")]
        taken = [*free, *oldest][: max(0, wanted - len(running.blocks))]
        assert len(running.blocks) + len(taken) >= wanted, "the pool is too small for this test"
        fresh = [int(block) for block in taken]
        running.blocks += fresh
        self._state[fresh] = BlockState.ACTIVE
        self._fill[running.blocks] = BLOCK_SIZE
        self._fill[running.blocks[-1:]] = running.tokens - (len(running.blocks) - 1) * BLOCK_SIZE
        self._epoch += 1


def _status(request_id: str, prompt: int, running: _Running) -> RequestStatus:
    generated = running.tokens - prompt
    return RequestStatus(
        request_id=request_id,
        state=RequestState.DECODE if generated else RequestState.PREFILL,
        prompt_tokens=prompt,
        computed_tokens=running.tokens,
        generated_tokens=generated,
        cached_tokens=0,
        blocks=len(running.blocks),
        preemptions=0,
        priority=0,
        queued_at=100.0,
        deadline=None,
        ttft=0.02 if generated else None,
        itl=0.02 if generated > 1 else None,
    )


def _words(text: str) -> list[str]:
    pieces = text.split(" ")
    return [piece + " " for piece in pieces[:-1]] + pieces[-1:]
