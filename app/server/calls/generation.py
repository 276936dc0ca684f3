"""The frame around every generating call: admission, submission, and the way out."""

from contextlib import AsyncExitStack
from dataclasses import dataclass

from starlette.requests import Request

from app.server.calls.fanout import Choices, fan_out
from app.server.calls.structured import build_grammar
from app.server.middleware.disconnect import while_connected
from app.server.process.context import ServerContext
from app.server.process.drain import cut_off
from app.server.wire.errors import ApiError, bad_request
from app.server.wire.schemas import SamplingFields
from engine.api.request import FinishReason, RequestOutput, SamplingParams, TokenBatch


@dataclass(frozen=True, slots=True)
class Generation:
    """A call whose choices run. `resources` must be closed; that also aborts what still runs.

    Attributes:
        prompts: one or more, each a tuple of token ids.
        n: choices a prompt, or candidates for them; number `i` continues prompt `i // n`.
    """

    prompts: list[tuple[int, ...]]
    n: int
    choices: Choices
    resources: AsyncExitStack


async def begin(
    context: ServerContext,
    body: SamplingFields,
    prompts: list[tuple[int, ...]],
    sampling: SamplingParams,
    *,
    candidates: int | None = None,
) -> Generation:
    """Admit the call and submit its choices.

    Args:
        context: the server.
        body: what was asked.
        prompts: one or more, each a tuple of token ids.
        sampling: how each choice goes on.
        candidates: answers to generate for each prompt; None takes as many as are to be given.

    Raises:
        ApiError: 400 for too many choices or a grammar that is refused, 503 while draining.
        InvalidRequest, QueueFull, EngineUnavailable: from the engine.
    """
    n = candidates or body.choices
    check_choices(context, n, len(prompts), param="n" if n == body.choices else "best_of")
    async with AsyncExitStack() as stack:
        stack.enter_context(context.drain.work())
        await build_grammar(context, body)
        choices = await stack.enter_async_context(
            fan_out(
                context.engine,
                prompts,
                sampling,
                n=n,
                request_id=body.request_id,
                priority=body.priority or 0,
                deadline_ms=body.deadline_ms,
            )
        )
        return Generation(prompts, n, choices, stack.pop_all())
    raise AssertionError("an exit stack never swallows an exception")


def check_choices(context: ServerContext, n: int, prompts: int, *, param: str = "n") -> None:
    """Refuse a call of more choices, or candidates for them, than the server allows.

    Args:
        context: the server.
        n: choices or candidates a prompt.
        prompts: how many prompts.
        param: the field that says `n`.

    Raises:
        ApiError: 400 that names the field.
    """
    limit = context.config.max_choices
    if n * prompts > limit:
        raise bad_request(
            f"The request asks for {n * prompts} choices; {limit} is the most.",
            param=param if n > 1 else "prompt",
        )


async def finish(
    request: Request, context: ServerContext, generation: Generation
) -> list[RequestOutput]:
    """Wait for every choice, whole, while the client is there.

    Raises:
        ClientGone, ApiError: nobody waits, or a choice failed.
    """
    async with generation.resources:
        outputs = await while_connected(request, context, generation.choices.outputs())
    for output in outputs:
        check_finish(output)
    return outputs


def check_finish(end: RequestOutput | TokenBatch) -> None:
    """Raise if a choice ended in a way that no `finish_reason` of the API describes.

    Raises:
        ApiError: 500 for a failed choice, 503 for one the engine gave up.
    """
    if end.finish_reason is FinishReason.ERROR:
        raise ApiError(500, end.error or "The engine failed on this request.", code="engine_error")
    if end.finish_reason is FinishReason.ABORT:
        raise cut_off()
