"""`ModelSession`: asynchronous generation on an `EngineClient`.

One session per client: it registers one wake-up callback and delivers every finished request to the coroutine
that waits for it. A cancelled coroutine aborts its request. Use from one event loop at a time.
"""

import asyncio
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial

from agents.api.budget import BudgetMeter
from agents.api.errors import ModelFailure
from agents.api.usage import Usage
from agents.model.identity import model_identity
from engine.api.errors import PravahaError
from engine.api.request import FinishReason, Request, TokenBatch
from engine.api.snapshot import ModelInfo
from engine.clients.engine_client import EngineClient


@dataclass(frozen=True, slots=True)
class Generation:
    """A finished request.

    Attributes:
        token_ids: generated ids, stop tokens included.
        text: their text, without stop strings and special tokens.
        finish_reason: `stop` or `length`.
        prompt_tokens: length of the prompt.
        cached_tokens: how many of them were found in the KV pool or shared with a running request.
        token_id_logprobs: per generated id, as `TokenBatch`.
        logprobs: of the generated ids, if the request asked for them.
        start, end: seconds on the engine's clock: when it was queued, when the last token came.
    """

    token_ids: tuple[int, ...]
    text: str
    finish_reason: FinishReason
    prompt_tokens: int
    cached_tokens: int = 0
    token_id_logprobs: tuple[tuple[float, ...], ...] = ()
    logprobs: tuple[float, ...] = ()
    start: float = 0.0
    end: float = 0.0

    @property
    def computed_tokens(self) -> int:
        """Prompt tokens that were not cached, and generated tokens."""
        return self.prompt_tokens - self.cached_tokens + len(self.token_ids)


@dataclass(slots=True)
class _Pending:
    """A request that was submitted and has not finished."""

    request: Request
    future: "asyncio.Future[Generation]"
    loop: asyncio.AbstractEventLoop
    batches: list[TokenBatch] = field(default_factory=list)


class ModelSession:
    """Generates with one client."""

    def __init__(self, client: EngineClient, *, background: bool = False) -> None:
        """Register with the client.

        Args:
            client: the engine.
            background: submit on a thread of its own, for clients whose `submit` waits for a network.
        """
        self.client = client
        self._pending: dict[str, _Pending] = {}
        self._discarded: dict[str, asyncio.AbstractEventLoop] = {}
        self._thread = ThreadPoolExecutor(1, "agents-submit") if background else None
        self._woken = False
        client.on_wake(self._wake)

    @property
    def num_pending(self) -> int:
        """Requests that have not finished, aborted ones included."""
        return len(self._pending) + len(self._discarded)

    def model(self) -> ModelInfo:
        """The loaded model.

        Raises:
            ModelFailure: no model is loaded.
        """
        model = self.client.snapshot().model
        if model is None:
            raise ModelFailure("No model is loaded.")
        return model

    def identity(self) -> str:
        """Identifies the loaded model, as `model_identity`.

        Raises:
            ModelFailure: no model is loaded.
        """
        return model_identity(self.model(), self.client.tokenizer_fingerprint())

    def block_size(self) -> int:
        """Tokens per KV block; 1 if the engine does not tell."""
        return max(1, self.client.snapshot().blocks.block_size)

    async def generate(self, request: Request, meter: BudgetMeter | None = None) -> Generation:
        """Submit one request and wait for its end.

        Args:
            request: the request; `max_tokens` must be set if there is a meter.
            meter: budget from which the tokens to be computed are reserved, then settled.

        Raises:
            BudgetExhausted: fewer tokens are left than the request may need.
            ModelFailure: the engine refused the request, failed or was stopped.
        """
        if meter is None:
            return await self._generate(request)
        reserved = await self.missing_tokens(request.prompt_ids) + (
            request.sampling.max_tokens or 0
        )
        meter.reserve_tokens(reserved)
        used = 0
        try:
            generation = await self._generate(request)
            used = generation.computed_tokens
            return generation
        finally:
            meter.settle_tokens(reserved, used)

    async def generate_all(
        self,
        requests: Sequence[Request],
        meter: BudgetMeter | None = None,
        *,
        shared_tokens: int = 0,
    ) -> list[Generation]:
        """Submit requests together and wait for all; if one fails, the others are aborted.

        The engine computes their common prefix once: the first of them that gets a row computes it, and the
        others wait for that (`engine.memory.reuse`).

        Args:
            requests: with `max_tokens` if there is a meter.
            meter: budget from which the tokens to be computed are reserved, then settled.
            shared_tokens: length of their common prefix.

        Raises:
            BudgetExhausted: fewer tokens are left than the requests may need; none is submitted.
            ModelFailure: as `generate`.
        """
        if not requests:
            return []
        reserved = 0
        if meter is not None:
            first = await self.missing_tokens(requests[0].prompt_ids)
            tails = sum(len(request.prompt_ids) - shared_tokens for request in requests[1:])
            reserved = first + tails + sum(one.sampling.max_tokens or 0 for one in requests)
            meter.reserve_tokens(reserved)
        tasks: list[asyncio.Task[Generation]] = []
        try:
            async with asyncio.TaskGroup() as group:
                tasks += [group.create_task(self._generate(request)) for request in requests]
        except ExceptionGroup as errors:
            raise errors.exceptions[0] from None
        finally:
            if meter is not None:
                finished = [
                    t for t in tasks if t.done() and not t.cancelled() and not t.exception()
                ]
                used = sum(task.result().computed_tokens for task in finished)
                meter.settle_tokens(reserved, used)
        return [task.result() for task in tasks]

    def close(self) -> None:
        """Abort what is pending and end the thread."""
        for request_id, pending in tuple(self._pending.items()):
            del self._pending[request_id]
            self._discard(request_id, pending.loop)
        if self._thread is not None:
            self._thread.shutdown(wait=False, cancel_futures=True)

    async def missing_tokens(self, prompt_ids: Sequence[int]) -> int:
        """How many tokens of a prompt would have to be computed now.

        Raises:
            ModelFailure: the prompt is not valid, or the engine does not answer.
        """
        try:
            price = await asyncio.wrap_future(self.client.price(prompt_ids))
        except PravahaError as error:
            raise ModelFailure(str(error)) from error
        return price.prefill_tokens

    async def _generate(self, request: Request) -> Generation:
        loop = asyncio.get_running_loop()
        pending = _Pending(request, loop.create_future(), loop)
        try:
            await self._submit(request)
        except PravahaError as error:
            raise ModelFailure(str(error)) from error
        self._pending[request.request_id] = pending
        self._deliver()  # the engine may have finished it before it was entered
        try:
            return await pending.future
        finally:
            if self._pending.pop(request.request_id, None) is not None:
                self._discard(request.request_id, loop)

    async def _submit(self, request: Request) -> None:
        if self._thread is None:
            self.client.submit(request)
            return
        submitting = self._thread.submit(self.client.submit, request)
        try:
            await asyncio.wrap_future(submitting)
        except asyncio.CancelledError:
            loop = asyncio.get_running_loop()
            submitting.add_done_callback(partial(self._discard_submitted, loop))
            raise

    def _discard_submitted(self, loop: asyncio.AbstractEventLoop, done: "Future[str]") -> None:
        """Abort a request whose waiter was cancelled while it was being submitted."""
        if not done.cancelled() and done.exception() is None:
            loop.call_soon_threadsafe(self._discard, done.result(), loop)

    def _discard(self, request_id: str, loop: asyncio.AbstractEventLoop) -> None:
        """Abort a request; its mailbox is emptied when its final batch comes."""
        self._discarded[request_id] = loop
        self.client.cancel(request_id)
        self._deliver()

    def _wake(self) -> None:
        """Any thread: have the loop look at the mailboxes, once per pass of the loop."""
        loop = next((one.loop for one in tuple(self._pending.values())), None)
        loop = loop or next(iter(tuple(self._discarded.values())), None)
        if self._woken or loop is None:
            return
        self._woken = True
        try:
            loop.call_soon_threadsafe(self._deliver)
        except RuntimeError:  # the loop is closed: nobody waits
            self._woken = False

    def _deliver(self) -> None:
        self._woken = False
        for request_id in tuple(self._discarded):
            batch = self.client.drain(request_id)
            if batch is not None and batch.finish_reason is not None:
                del self._discarded[request_id]
        for request_id, pending in tuple(self._pending.items()):
            batch = self.client.drain(request_id)
            if batch is None:
                continue
            pending.batches.append(batch)
            if batch.finish_reason is not None:
                del self._pending[request_id]
                _settle(pending)


def usage_of(generations: Iterable[Generation]) -> Usage:
    """The tokens of several generations."""
    total = Usage()
    for one in generations:
        total = total.plus(Usage(one.computed_tokens, one.cached_tokens, len(one.token_ids)))
    return total


def _settle(pending: _Pending) -> None:
    last = pending.batches[-1]
    if pending.future.done():  # cancelled; its waiter has not run yet
        return
    if last.finish_reason in (FinishReason.ERROR, FinishReason.ABORT):
        pending.future.set_exception(ModelFailure(last.error or "The request was aborted."))
        return
    if last.finish_reason is None:
        raise AssertionError("the request has not finished")
    batches = pending.batches
    pending.future.set_result(
        Generation(
            token_ids=tuple(one for batch in batches for one in batch.token_ids),
            text="".join(batch.text for batch in batches),
            finish_reason=last.finish_reason,
            prompt_tokens=len(pending.request.prompt_ids),
            cached_tokens=max(batch.cached_tokens for batch in batches),
            token_id_logprobs=tuple(
                values for batch in batches for values in batch.token_id_logprobs
            ),
            logprobs=tuple(value for batch in batches for value in batch.logprobs),
            start=last.timings.queued,
            end=last.timings.last_token or last.timings.queued,
        )
    )
