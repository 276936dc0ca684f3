"""`PlannedChoices`: the choices of a turn whose plan is made first (`call_plan`).

The rows that the plan needs are submitted at once, the choices when somebody reads: an answer can begin to be
streamed, and a client be told that it is being worked on, while the prompt is computed.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import replace
from typing import TypeVar

from app.server.calls.fanout import Choices
from engine.api.request import RequestOutput, SamplingParams, TokenBatch
from engine.grammar.call_plan import CallPlanner

Part = TypeVar("Part", TokenBatch, RequestOutput)
Submit = Callable[[Sequence[tuple[int, ...]], SamplingParams], AbstractAsyncContextManager[Choices]]
"""Submits choices of prompts."""


class PlannedChoices(Choices):
    """Choices that begin when their rows have been computed."""

    def __init__(
        self,
        planner: CallPlanner,
        rows: Sequence[Choices],
        begin: Callable[[], AbstractAsyncContextManager[Choices]],
        stack: AsyncExitStack,
    ) -> None:
        """Plan with `rows`, then begin the choices in `stack`, which aborts them when it is closed."""
        super().__init__(())
        self._planner = planner
        self._rows = rows
        self._begin = begin
        self._stack = stack
        self._choices: Choices | None = None
        self._cached_tokens: int | None = None

    @property
    def request_ids(self) -> list[str]:
        """As of `Choices`; none before they begin."""
        return [] if self._choices is None else self._choices.request_ids

    @property
    def reading_ids(self) -> list[str]:
        """As of `Choices`; before they begin, those of the rows."""
        return self.request_ids or [name for one in self._rows for name in one.request_ids]

    async def batches(self) -> AsyncIterator[tuple[int, TokenBatch]]:
        """As of `Choices`."""
        choices = await self._begun()
        async for index, batch in choices.batches():
            yield index, self._counted(batch)

    async def outputs(self) -> list[RequestOutput]:
        """As of `Choices`."""
        return [self._counted(one) for one in await (await self._begun()).outputs()]

    def abort_choice(self, index: int) -> None:
        """As of `Choices`; no effect before they begin."""
        if self._choices is not None:
            self._choices.abort_choice(index)

    def abort(self) -> None:
        """Abort rows and choices that still run."""
        for one in (*self._rows, *([] if self._choices is None else [self._choices])):
            one.abort()

    async def _begun(self) -> Choices:
        if self._choices is None:
            outputs = [output for one in self._rows for output in await one.outputs()]
            self._cached_tokens = min((one.cached_tokens for one in outputs), default=None)
            self._planner.decide(outputs)
            self._choices = await self._stack.enter_async_context(self._begin())
        return self._choices

    def _counted(self, part: Part) -> Part:
        """An output with the prompt tokens that were cached before the rows were computed."""
        cached = self._cached_tokens
        if cached is None or part.cached_tokens <= cached:
            return part
        return replace(part, cached_tokens=cached)


@asynccontextmanager
async def planned(
    planner: CallPlanner,
    prompt: tuple[int, ...],
    sampling: SamplingParams,
    *,
    ask: Submit,
    answer: Submit,
) -> AsyncIterator[PlannedChoices]:
    """Submit the rows of a plan, and the choices once it is made.

    Args:
        planner: makes the plan.
        prompt: the conversation, up to the beginning of the answer.
        sampling: parameters of the answer.
        ask: submits a row.
        answer: submits the choices.

    Raises:
        InvalidRequest, QueueFull, EngineUnavailable: from the engine; no row is left running.
    """
    async with AsyncExitStack() as stack:
        rows = [
            await stack.enter_async_context(ask([ids], params))
            for ids, params in planner.rows(prompt)
        ]

        def begin() -> AbstractAsyncContextManager[Choices]:
            return answer([(*prompt, *planner.plan.suffix)], planner.sampling(sampling))

        yield PlannedChoices(planner, rows, begin, stack)
