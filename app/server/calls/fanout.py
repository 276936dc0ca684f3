"""Several choices of one API call, each an engine request of its own.

Choices of one prompt compute it once: the engine has the later ones wait for the first and share
its KV blocks, the last one in a copy.

Whatever happens inside `async with fan_out(...)`, leaving it aborts every choice that has not
finished, so a client that went away holds no block beyond the next step.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

from engine.api.request import (
    Request,
    RequestOutput,
    SamplingParams,
    TokenBatch,
    new_request_id,
)
from engine.runtime.engine import AsyncPravahaEngine
from engine.runtime.forking import child_seed
from engine.runtime.request_handle import RequestHandle


def choice_seed(seed: int | None, index: int) -> int | None:
    """The seed of one choice: the caller's own for the first, derived from it for the others.

    So `n` choices differ, each replays, and the first is what `n=1` gives.
    """
    if seed is None or index == 0:
        return seed
    return child_seed(seed, index)


class Choices:
    """The live requests of one API call; position in `handles` is the choice's `index`."""

    def __init__(self, handles: Sequence[RequestHandle]) -> None:
        self._handles = handles

    async def batches(self) -> AsyncIterator[tuple[int, TokenBatch]]:
        """(index, batch) of every choice as they come; ends when all choices have ended."""
        if len(self._handles) == 1:
            async for batch in self._handles[0]:
                yield 0, batch
            return
        # Bounded, so that a slow reader leaves tokens in the mailboxes, where they coalesce.
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
        """Every choice, whole."""
        return list(await asyncio.gather(*(handle.result() for handle in self._handles)))

    def abort(self) -> None:
        """End what still runs; finished choices do not mind."""
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
    deadline_ms: float | None = None,
) -> AsyncIterator[Choices]:
    """Submit `n` choices of each prompt, prompt by prompt.

    Raises:
        InvalidRequest, QueueFull, EngineUnavailable: from the engine; nothing is left behind.
    """
    base = request_id or new_request_id()
    handles: list[RequestHandle] = []
    choices = Choices(handles)
    single = n * len(prompts) == 1
    try:
        for prompt in prompts:
            for index in range(n):
                request = Request(
                    prompt_ids=prompt,
                    sampling=replace(sampling, seed=choice_seed(sampling.seed, index)),
                    request_id=base if single else f"{base}-{len(handles)}",
                    priority=priority,
                    deadline_ms=deadline_ms,
                )
                handles.append(engine.submit(request))
        yield choices
    finally:
        choices.abort()
