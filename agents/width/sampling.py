"""`sample`: the answers to one prompt as they finish, all from one prefill.

All requests have the same token ids and are submitted together: the first that gets a row computes the
prompt, the others share its KV blocks (`engine.memory.reuse`), and all are decoded in one batch. Closing the
iterator aborts what still runs.
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence

from agents.api.budget import BudgetMeter
from agents.api.errors import BudgetExhausted
from agents.model.session import Generation, ModelSession
from engine.api.request import Request, SamplingParams

STOP = ("\n```",)
"""Ends an answer whose prompt opened the fence."""
_TOP_P = 0.95


def ladder(width: int) -> tuple[float, ...]:
    """Temperatures of `width` candidates: greedy, then rising from 0.3 to 1.0."""
    return (0.0, *_rising(width - 1, 0.3, 1.0))


def second_ladder(width: int) -> tuple[float, ...]:
    """Temperatures after all of the first failed: what is likely was wrong, so they are higher."""
    return _rising(width, 0.6, 1.1)


def _rising(count: int, low: float, high: float) -> tuple[float, ...]:
    step = (high - low) / max(1, count - 1)
    return tuple(round(low + step * at, 2) for at in range(count))


def sampling_params(
    temperature: float, *, number: int, max_tokens: int, stop: Sequence[str] = ()
) -> SamplingParams:
    """The parameters of one candidate; the seed makes a run repeatable."""
    return SamplingParams(
        temperature=temperature,
        top_p=_TOP_P if temperature else 1.0,
        seed=number,
        max_tokens=max_tokens,
        stop=tuple(stop),
        logprobs=0,
    )


async def sample(
    session: ModelSession,
    requests: Sequence[Request],
    meter: BudgetMeter | None = None,
) -> AsyncGenerator[tuple[int, Generation], None]:
    """The generations with their index, in the order in which they finish.

    Args:
        session: the engine.
        requests: with equal prompts, and `max_tokens` if there is a meter.
        meter: pays for each.

    Raises:
        BudgetExhausted: the budget does not allow a single one; otherwise those it allows are made.
        ModelFailure: the engine refused or failed one.
    """
    tasks = {
        asyncio.ensure_future(session.generate(request, meter)): at
        for at, request in enumerate(requests)
    }
    pending = set(tasks)
    refused: BudgetExhausted | None = None
    finished = 0
    try:
        while pending:
            done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            for task in sorted(done, key=lambda one: tasks[one]):
                try:
                    generation = task.result()
                except BudgetExhausted as error:
                    refused = error
                    continue
                finished += 1
                yield tasks[task], generation
        if refused is not None and not finished:
            raise refused
    finally:
        for task in pending:
            task.cancel()
        # Those that failed beside the one that was raised are asked for their exception, too.
        await asyncio.gather(*tasks, return_exceptions=True)
