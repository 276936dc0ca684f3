"""The choices of one API call, each a separate engine request.

Choices of one prompt prefill it once, prompt logprobs included: the engine lets the later ones wait for
the first and share its KV blocks, the last of them copied.

Leaving `async with fan_out(...)` aborts every choice that has not finished, so that a client that
disconnected holds no block beyond the next step.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

from engine.api.image import PlacedImage
from engine.api.request import (
    Request,
    RequestOutput,
    SamplingParams,
    TokenBatch,
    new_request_id,
)
from engine.api.service_class import ServiceClass
from engine.runtime.engine import AsyncPravahaEngine
from engine.runtime.forking import child_seed
from engine.runtime.request_handle import RequestHandle


def choice_seed(seed: int | None, index: int) -> int | None:
    """The seed of one choice: the given one for the first, derived from it for the others.

    The choices differ, each can be reproduced, and the first equals that of `n=1`.
    """
    if seed is None or index == 0:
        return seed
    return child_seed(seed, index)


class Choices:
    """The requests of one API call; the position in `handles` is the choice's `index`."""

    def __init__(self, handles: Sequence[RequestHandle]) -> None:
        self._handles = handles

    @property
    def request_ids(self) -> list[str]:
        """The engine's ids of the choices, in order."""
        return [handle.request_id for handle in self._handles]

    @property
    def reading_ids(self) -> list[str]:
        """The engine's ids of the requests that read the prompt, at least one."""
        return self.request_ids

    async def batches(self) -> AsyncIterator[tuple[int, TokenBatch]]:
        """(index, batch) of every choice as they arrive, until all choices have finished."""
        if len(self._handles) == 1:
            async for batch in self._handles[0]:
                yield 0, batch
            return
        # Bounded: with a slow reader, tokens stay in the mailboxes, which merge them.
        ready: asyncio.Queue[tuple[int, TokenBatch]] = asyncio.Queue(maxsize=len(self._handles))
        pumps = [
            asyncio.create_task(_pump(index, handle, ready))
            for index, handle in enumerate(self._handles)
        ]
        try:
            open_choices = len(pumps)
            while open_choices:
                index, batch = await ready.get()
                open_choices -= batch.finish_reason is not None
                yield index, batch
        finally:
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)

    async def outputs(self) -> list[RequestOutput]:
        """Wait for every choice; their complete outputs."""
        return list(await asyncio.gather(*(handle.result() for handle in self._handles)))

    def abort_choice(self, index: int) -> None:
        """Abort one choice; no effect on a finished one."""
        self._handles[index].abort()

    def abort(self) -> None:
        """Abort the choices that still run; no effect on finished ones."""
        for handle in self._handles:
            handle.abort()


async def _pump(
    index: int, handle: RequestHandle, ready: asyncio.Queue[tuple[int, TokenBatch]]
) -> None:
    async for batch in handle:
        await ready.put((index, batch))


@asynccontextmanager
async def fan_out(
    engine: AsyncPravahaEngine,
    prompts: Sequence[tuple[int, ...]],
    sampling: SamplingParams,
    *,
    n: int,
    request_id: str | None,
    priority: int = 0,
    service_class: ServiceClass = "interactive",
    deadline_ms: float | None = None,
    cache_salt: str | None = None,
    continued_tokens: int = 0,
    images: tuple[PlacedImage, ...] = (),
    session: str | None = None,
    may_be_held: bool = False,
) -> AsyncIterator[Choices]:
    """Submit `n` choices of each prompt, prompt by prompt.

    Raises:
        InvalidRequest, QueueFull, EngineUnavailable: from the engine; no choice was submitted.
    """
    base = request_id or new_request_id()
    requests: list[Request] = []
    single = n * len(prompts) == 1
    for prompt in prompts:
        for index in range(n):
            request = Request(
                prompt_ids=prompt,
                sampling=replace(sampling, seed=choice_seed(sampling.seed, index)),
                request_id=base if single else f"{base}-{len(requests)}",
                priority=priority,
                service_class=service_class,
                deadline_ms=deadline_ms,
                cache_salt=cache_salt,
                continued_tokens=continued_tokens,
                images=images,
                session=session,
                may_be_held=may_be_held,
            )
            requests.append(request)
    async with submitted(engine, requests) as choices:
        yield choices


@asynccontextmanager
async def submitted(
    engine: AsyncPravahaEngine, requests: Sequence[Request]
) -> AsyncIterator[Choices]:
    """Submit the requests of one call, all or none; those that have not finished are aborted at the end.

    Raises:
        InvalidRequest, QueueFull, EngineUnavailable: from the engine; no request was submitted.
    """
    choices = Choices(engine.submit_all(requests))
    try:
        yield choices
    finally:
        choices.abort()
