"""`decide`: answers to many questions about one input, from probabilities of single tokens.

The rows are those of `engine.decisions`, as `AsyncPravahaEngine.decide` computes them; here the input is a
conversation with images, texts are checked by the guardrails, and a client that leaves ends its rows.
"""

from collections.abc import Sequence
from itertools import islice

from starlette.requests import Request

from app.server.calls.chat_form import ChatForm
from app.server.calls.chat_images import read_images
from app.server.calls.decision_input import AskedDecisions
from app.server.calls.fanout import submitted
from app.server.calls.generation import check_finish
from app.server.calls.guarding import CallGuard
from app.server.calls.model import LoadedModel, check_length, loaded_model, off_loop
from app.server.calls.prompts import TURN_COST_CHARS, chat_prompt
from app.server.calls.responses_request import OwnNames
from app.server.middleware.disconnect import while_connected
from app.server.process.context import ServerContext
from app.server.wire.schemas import ChatCompletionRequest, Message
from engine.api.decisions import DecisionQuestion, Decisions
from engine.api.image import PlacedImage
from engine.decisions.batch import DecisionBatch
from engine.decisions.preparing import BEGUN, TEMPLATE_VARIABLES, prepare

_LABEL_TOKENS = 2
_TOKENS_AT_ONCE = 128 * 1024
"""Of the rows that are submitted together: the event loop does nothing else meanwhile, for about 100 ms."""
_LEAST_ROWS = 4


async def decide(request: Request, context: ServerContext, asked: AskedDecisions) -> Decisions:
    """Decide the questions of a body while the client is connected.

    Raises:
        ApiError: the request is refused, a row failed, or the drain expired.
        ClientDisconnected: the client left meanwhile.
        InvalidRequest, QueueFull, EngineUnavailable: from the engine.
    """
    model = loaded_model(context, asked.model)
    with OwnNames(asked.input.paths).in_errors():
        batch = await _prepared(request, context, model, asked)
    with context.drain.work():
        return await while_connected(request, context, _decided(context, model, batch))


async def _prepared(
    request: Request, context: ServerContext, model: LoadedModel, asked: AskedDecisions
) -> DecisionBatch:
    """The checked and encoded questions.

    Raises:
        ApiError, InvalidRequest, ValidationError: the input or a question is refused.
    """
    body = ChatCompletionRequest.model_validate(
        {"model": model.info.name, "messages": asked.input.messages}
    )
    messages = list(body.messages)
    images = await read_images(request, context, body, model)
    if images is not None:
        messages = images.in_messages(messages, small=model.info.is_small)
        request.state.images = images.way
    guard = CallGuard(context, body)
    form = ChatForm(continue_final_message=True, variables=TEMPLATE_VARIABLES)
    begun = [*messages, Message.model_validate(BEGUN)]
    prompt = await chat_prompt(model, begun, form, check=guard.check_value)
    ids, placed = prompt.ids[: len(prompt.ids) - prompt.continued_tokens], tuple[PlacedImage, ...]()
    if images is not None:
        ids, placed = await images.placed(context, ids)

    def encoded() -> DecisionBatch:
        return prepare(
            model.tokenizer,
            [
                _checked(guard, one, path)
                for one, path in zip(asked.questions, asked.paths, strict=True)
            ],
            asked.rules,
            shared=ids,
            block_size=max(1, model.engine.snapshot().blocks.block_size),
            model=model.info.name,
            calibration=model.engine.calibration,
            images=placed,
            cache_salt=asked.cache_salt,
        )

    texts = [text for one in asked.questions for text in (one.text, *one.shown())]
    size = sum(map(len, texts)) + TURN_COST_CHARS * len(texts)
    batch = await off_loop(size, encoded)
    check_length(batch.shared, model.info, param="input", answer_room=_LABEL_TOKENS)
    longest = max(batch.tails[batch.longest], key=len)
    check_length(
        (*batch.shared, *longest),
        model.info,
        param=asked.paths[batch.longest],
        answer_room=_LABEL_TOKENS,
    )
    request.state.guardrails = guard.header
    return batch


def _checked(guard: CallGuard, question: DecisionQuestion, path: str) -> DecisionQuestion:
    """A question as the model is to read it."""
    return question.rewritten(
        lambda text: guard.check_text(text, param=f"{path}.instructions"),
        lambda text: guard.check_text(text, param=path),
    )


def rows_at_once(length: int, most: int) -> int:
    """How many rows of so many tokens are submitted together.

    Args:
        length: tokens of a row.
        most: the limit of short ones.
    """
    return min(most, max(_LEAST_ROWS, _TOKENS_AT_ONCE // max(1, length)))


async def _decided(context: ServerContext, model: LoadedModel, batch: DecisionBatch) -> Decisions:
    """Compute the rows, at most as many at a time as one call may have choices, or fewer long ones.

    Raises:
        ApiError: a row failed.
        QueueFull, EngineUnavailable: from the engine.
    """
    read: list[tuple[Sequence[float], int]] = []
    rows = batch.requests()
    count = rows_at_once(len(batch.shared), context.config.max_choices)
    while requests := list(islice(rows, count)):
        async with submitted(model.engine, requests) as choices:
            outputs = await choices.outputs()
        for output in outputs:
            check_finish(output)
            read.append((output.token_id_logprobs[0], output.cached_tokens))
    return batch.decisions(model.info.name, read)
