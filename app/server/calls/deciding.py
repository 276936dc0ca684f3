"""`decide`: answers to many questions about one input, from probabilities of single tokens.

The prompt of a question is the input, the question with its options behind labels, and the beginning of an
answer; the log-probabilities of the labels are read there, and nothing is generated. As small models prefer
certain labels and places, every question is asked in two orders of its options, and the log-probabilities are
averaged (`agents.model.decisions`). The input is encoded apart from the questions: all rows begin with the
same tokens, which the engine computes once.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from starlette.requests import Request

from agents.api.errors import ModelFailure
from agents.model.decisions import option_probabilities, orders
from app.server.calls.chat_form import ChatForm
from app.server.calls.chat_images import read_images
from app.server.calls.decision_input import AskedQuestion, asked_question, decision_messages
from app.server.calls.decision_labels import Labels
from app.server.calls.fanout import fan_out
from app.server.calls.generation import check_finish
from app.server.calls.guarding import CallGuard
from app.server.calls.model import LoadedModel, check_length, loaded_model, off_loop
from app.server.calls.prompts import TURN_COST_CHARS, chat_prompt
from app.server.calls.responses_input import ChatInput
from app.server.calls.responses_request import OwnNames
from app.server.middleware.disconnect import while_connected
from app.server.process.context import ServerContext
from app.server.wire.decisions_schemas import DecisionQuestion, DecisionRequest
from app.server.wire.errors import bad_request
from app.server.wire.schemas import ChatCompletionRequest, Message
from app.server.wire.usage import input_output_usage
from engine.api.chat import ChatMessage
from engine.api.errors import InvalidRequest
from engine.api.image import PlacedImage
from engine.api.request import SamplingParams

_VARIABLES = {"enable_thinking": False}
"""For chat templates of models that reason: the answer begins at once."""
_QUESTION = "the-question"
_LABEL_TOKENS = 2
_LEAST_LOGPROB = -1000.0
"""A token that is masked has minus infinity, with which nothing can be computed."""


@dataclass(frozen=True, slots=True)
class Decided:
    """What was decided.

    Attributes:
        model: its name.
        probabilities: of each question's options, in their order.
        input_tokens: of the input and of every question once.
        cached_tokens: of the input, what was cached before.
        output_tokens: one for each row.
    """

    model: str
    probabilities: list[list[float]]
    input_tokens: int
    cached_tokens: int
    output_tokens: int

    def usage(self) -> dict[str, Any]:
        """OpenAI's `usage`."""
        return input_output_usage(self.input_tokens, self.cached_tokens, self.output_tokens)


class Asking:
    """The questions of one call, as rows.

    Attributes:
        shared: token ids that all rows begin with.
        images: those that the model sees among them.
        questions: token ids of each question behind the input, in both orders of its options.
        sampling: parameters of every row.
    """

    def __init__(
        self,
        model: LoadedModel,
        shared: tuple[int, ...],
        images: tuple[PlacedImage, ...],
        asked: Sequence[AskedQuestion],
        separator: str,
    ) -> None:
        """Encode the questions.

        Args:
            model: the model.
            shared: the input, up to where questions follow.
            images: those of the input, in their places.
            asked: the questions.
            separator: what stands between the input and a question.

        Raises:
            ModelFailure: the tokenizer has no tokens for labels.
            InvalidRequest: the chat template rejects a plain question.
            ContextLengthExceeded: a question does not fit behind the input.
        """
        self.shared = shared
        self.images = images
        self._asked = asked
        most = max(len(one.options) for one in asked)
        self._labels = labels = Labels(model.tokenizer.encode, most)
        self.sampling = SamplingParams(
            temperature=0.0, max_tokens=1, ignore_eos=True, logprob_token_ids=labels.token_ids
        )
        end = _end_of_question(model, labels.prefix)
        self.questions: list[tuple[tuple[int, ...], ...]] = [
            tuple(
                (*model.tokenizer.encode_rest(separator + text), *end)
                for text in (
                    labels.asked(one.text, one.options, order) for order in orders(len(one.options))
                )
            )
            for one in asked
        ]
        longest = [max(map(len, both)) for both in self.questions]
        at = max(range(len(longest)), key=longest.__getitem__)
        question = max(self.questions[at], key=len)
        check_length(shared, model.info, param="input", answer_room=_LABEL_TOKENS)
        check_length(
            (*shared, *question), model.info, param=f"questions[{at}]", answer_room=_LABEL_TOKENS
        )

    def rows(self) -> Iterator[tuple[int, ...]]:
        """The prompts, question by question; long ones are built when they are needed."""
        for one, both in zip(self._asked, self.questions, strict=True):
            for question in both:
                for begun in self._labels.begun(len(one.options)):
                    yield (*self.shared, *question, *begun)

    def probabilities(self, rows: Sequence[Sequence[float]]) -> list[list[float]]:
        """Of each question's options, from the log-probabilities of all rows."""
        following = iter(rows)
        found = []
        for one in self._asked:
            count = len(one.options)
            number = len(self._labels.begun(count))
            forward, backward = (
                self._labels.log_probabilities(count, list(islice(following, number)))
                for _ in range(2)
            )
            found.append(option_probabilities((forward, backward[::-1])))
        return found


def _end_of_question(model: LoadedModel, prefix: str) -> tuple[int, ...]:
    """Token ids of what follows a question: the end of the turn, and the beginning of an answer.

    Raises:
        InvalidRequest: the chat template does not write a plain question.
    """
    messages: list[ChatMessage] = [
        {"role": "user", "content": _QUESTION},
        {"role": "assistant", "content": prefix},
    ]
    text = model.tokenizer.render_open_chat(messages, variables=_VARIABLES)
    _, found, end = text.rpartition(_QUESTION)
    if not found:
        raise InvalidRequest("The model's chat template rewrites questions.", param="questions")
    return tuple(model.tokenizer.encode(end, special=True)) if end else ()


async def decide(request: Request, context: ServerContext, body: DecisionRequest) -> Decided:
    """Decide the questions of a body while the client is connected.

    Raises:
        ApiError: the request is refused, a row failed, or the drain expired.
        ClientDisconnected: the client left meanwhile.
        InvalidRequest, QueueFull, EngineUnavailable: from the engine.
    """
    asked = [asked_question(one, f"questions[{index}]") for index, one in enumerate(body.questions)]
    chat = decision_messages(body)
    model = loaded_model(context, body.model)
    with OwnNames(chat.paths).in_errors():
        asking = await _asking(request, context, model, chat, asked)
    with context.drain.work():
        return await while_connected(request, context, _decided(context, model, asking))


async def _asking(
    request: Request,
    context: ServerContext,
    model: LoadedModel,
    chat: ChatInput,
    asked: Sequence[AskedQuestion],
) -> Asking:
    """The checked and encoded questions.

    Raises:
        ApiError, InvalidRequest, ValidationError: the input or a question is refused.
    """
    body = ChatCompletionRequest.model_validate(
        {"model": model.info.name, "messages": chat.messages}
    )
    messages = list(body.messages)
    images = await read_images(request, context, body, model)
    if images is not None:
        messages = images.in_messages(messages, small=model.info.is_small)
        request.state.images = images.way
    if messages[-1].has_images:  # such a message cannot be continued
        messages.append(Message.model_validate({"role": "user", "content": ""}))
    guard = CallGuard(context, body)
    form = ChatForm(continue_final_message=True, variables=_VARIABLES)
    prompt = await chat_prompt(model, messages, form, check=guard.check_value)
    ids, placed = prompt.ids, tuple[PlacedImage, ...]()
    if images is not None:
        ids, placed = await images.placed(context, ids)

    def encoded() -> Asking:
        checked = [_checked(guard, one, f"questions[{at}]") for at, one in enumerate(asked)]
        separator = "\n\n" if messages[-1].text else ""
        return Asking(model, ids, placed, checked, separator)

    texts = [text for one in asked for text in (one.text, *one.options)]
    size = sum(map(len, texts)) + TURN_COST_CHARS * len(texts)
    try:
        asking = await off_loop(size, encoded)
    except ModelFailure as error:
        raise bad_request(str(error), param="model", code="model_not_supported") from error
    request.state.guardrails = guard.header
    return asking


def _checked(guard: CallGuard, asked: AskedQuestion, path: str) -> AskedQuestion:
    """A question as the model is to read it."""
    options = (guard.check_text(one, param=path) for one in asked.options)
    return AskedQuestion(guard.check_text(asked.text, param=f"{path}.instructions"), tuple(options))


async def _decided(context: ServerContext, model: LoadedModel, asking: Asking) -> Decided:
    """Compute the rows, at most as many at a time as one call may have choices.

    Raises:
        ApiError: a row failed.
        QueueFull, EngineUnavailable: from the engine.
    """
    read: list[Sequence[float]] = []
    cached = len(asking.shared)
    rows = asking.rows()
    while prompts := list(islice(rows, context.config.max_choices)):
        async with fan_out(
            model.engine,
            prompts,
            asking.sampling,
            n=1,
            request_id=None,
            images=asking.images,
        ) as choices:
            outputs = await choices.outputs()
        for output in outputs:
            check_finish(output)
            read.append([max(one, _LEAST_LOGPROB) for one in output.token_id_logprobs[0]])
            cached = min(cached, output.cached_tokens)
    questions = sum(len(both[0]) for both in asking.questions)
    return Decided(
        model.info.name,
        asking.probabilities(read),
        len(asking.shared) + questions,
        cached,
        output_tokens=len(read),
    )


def decision_answer(question: DecisionQuestion, shares: Sequence[float]) -> dict[str, Any]:
    """OpenAI's answer to a question, from the probabilities of its options."""
    head = {"type": question.type, "name": question.name}
    if question.type == "predicate":
        return {**head, "probability": shares[0]}
    best = max(range(len(shares)), key=shares.__getitem__)
    if question.type == "choice":
        values = [one.value for one in question.choices or ()]
        probabilities = [
            {"value": value, "probability": share}
            for value, share in zip(values, shares, strict=True)
        ]
        return {
            **head,
            "choice": values[best],
            "confidence": shares[best],
            "probabilities": probabilities,
        }
    levels = [
        {"label": one.label, "value": value, "probability": share}
        for value, (one, share) in enumerate(zip(question.levels or (), shares, strict=True))
    ]
    return {
        **head,
        "score": sum(value * share for value, share in enumerate(shares)),
        "confidence": shares[best],
        "probabilities": levels,
    }
