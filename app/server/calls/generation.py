"""Checks, submission and completion of every call that generates text."""

from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass
from functools import partial

from starlette.requests import Request

from app.server.calls.fanout import Choices, fan_out
from app.server.calls.guarding import CallGuard
from app.server.calls.model import loaded_model
from app.server.calls.planned_choices import planned
from app.server.calls.request_session import request_session
from app.server.calls.resumable import check_resumable
from app.server.calls.structured import build_call_grammar, build_grammar
from app.server.middleware.disconnect import while_connected
from app.server.process.context import ServerContext
from app.server.process.drain import shutting_down_error
from app.server.wire.errors import bad_request, server_error
from app.server.wire.schemas import SamplingFields
from engine.api.image import PlacedImage
from engine.api.request import FinishReason, RequestOutput, SamplingParams, TokenBatch
from engine.grammar.call_plan import CallPlanner


@dataclass(frozen=True, slots=True)
class Generation:
    """A call whose choices run. `resources` must be closed, which also aborts running choices.

    Attributes:
        prompts: one or more, each a tuple of token ids.
        n: choices or candidates of each prompt; number `i` continues prompt `i // n`.
        guard: checks the texts of the choices.
    """

    prompts: list[tuple[int, ...]]
    n: int
    choices: Choices
    resources: AsyncExitStack
    guard: CallGuard


async def begin(
    request: Request,
    context: ServerContext,
    body: SamplingFields,
    prompts: list[tuple[int, ...]],
    sampling: SamplingParams,
    guard: CallGuard,
    *,
    candidates: int | None = None,
    continued_tokens: int = 0,
    images: tuple[PlacedImage, ...] = (),
    planner: CallPlanner | None = None,
    goes_on: bool = False,
    session: str | None = None,
    may_be_held: bool = False,
) -> Generation:
    """Check the call and submit its choices.

    Args:
        request: the HTTP request.
        context: the server.
        body: the request body.
        prompts: one or more, each a tuple of token ids.
        sampling: parameters of each choice.
        guard: of the call.
        candidates: answers to generate for each prompt; None generates `body.choices`.
        continued_tokens: as in `Request`, for each prompt.
        images: as in `Request`, of the only prompt.
        planner: plans the answer to the only prompt, of a chat with tools.
        goes_on: as in `Drain.work`.
        session: the engine's name of the conversation; None for the name that the request gives.
        may_be_held: as in `Request`, of a request that names no service class: one that does may be held if
            it is not interactive. One with a deadline never is.

    Raises:
        ApiError: 400 for too many choices or a grammar that is refused, 503 while draining.
        ClientDisconnected: the client left while its grammar was compiled.
        InvalidRequest, QueueFull, EngineUnavailable: from the engine.
    """
    n = candidates or body.choices
    check_choices(context, n, len(prompts), param="n" if n == body.choices else "best_of")
    check_resumable(context, body)
    async with AsyncExitStack() as stack:
        stack.enter_context(context.drain.work(goes_on=goes_on))
        await build_grammar(request, context, body, sampling.grammar)
        engine = loaded_model(context, body.model, keep_alive_s=body.keep_alive).engine
        if session is None:
            session = request_session(request, context, body.session)
        if body.service_class is not None:
            may_be_held = body.service_class != "interactive"
        submit = partial(
            fan_out,
            engine,
            priority=body.priority or 0,
            service_class=body.service_class or "interactive",
            deadline_ms=body.deadline_ms,
            cache_salt=body.cache_salt,
            continued_tokens=continued_tokens,
            images=images,
            session=session,
            may_be_held=session is not None and may_be_held and body.deadline_ms is None,
        )
        answer = partial(submit, n=n, request_id=body.request_id)
        if planner is None:
            submitted: AbstractAsyncContextManager[Choices] = answer(prompts, sampling)
        else:
            await build_call_grammar(request, context, engine, planner)
            ask = partial(submit, n=1, request_id=None)
            submitted = planned(planner, prompts[0], sampling, ask=ask, answer=answer)
        choices = await stack.enter_async_context(submitted)
        return Generation(prompts, n, choices, stack.pop_all(), guard)
    raise AssertionError("an exit stack never swallows an exception")


def check_choices(context: ServerContext, n: int, prompts: int, *, param: str = "n") -> None:
    """Refuse a call of more choices or candidates than the server allows.

    Args:
        context: the server.
        n: choices or candidates of each prompt.
        prompts: number of prompts.
        param: the field that sets `n`.

    Raises:
        ApiError: 400 that names the field.
    """
    limit = context.config.max_choices
    if n * prompts > limit:
        raise bad_request(
            f"The request asks for {n * prompts} choices; the maximum is {limit}.",
            param=param if n > 1 else "prompt",
        )


async def finish(
    request: Request, context: ServerContext, generation: Generation
) -> list[RequestOutput]:
    """Wait for the complete output of every choice while the client is connected.

    Raises:
        ClientDisconnected: the client disconnected.
        ApiError: a choice failed, or the drain expired.
    """
    async with generation.resources:
        outputs = await while_connected(request, context, generation.choices.outputs())
    for output in outputs:
        check_finish(output)
    return outputs


def check_finish(part: RequestOutput | TokenBatch) -> None:
    """Raise if a choice finished for a reason that the API's `finish_reason` cannot express.

    Raises:
        ApiError: 500 for a failed choice, 503 for an aborted one.
    """
    if part.finish_reason is FinishReason.ERROR:
        raise server_error(part.error or "The engine failed on this request.", code="engine_error")
    if part.finish_reason is FinishReason.ABORT:
        raise shutting_down_error()
