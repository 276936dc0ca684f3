"""`ChatTurn`: one turn of the assistant, from a request body to the parts of its answer.

Every face of the server that speaks of messages and answers makes a `ChatCompletionRequest` of its own
request, begins a turn and formats what the turn yields.
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from typing import Any

from starlette.requests import Request

from app.server.calls.chat_choice import AnsweredChoice, ChatChoice, ChoiceEnd, TurnPiece
from app.server.calls.chat_form import chat_form
from app.server.calls.chat_images import ChatImages, read_images
from app.server.calls.chat_sources import ChatSources, find_sources, with_sources
from app.server.calls.cited_choice import CitedChoice
from app.server.calls.generation import Generation, begin, check_finish, finish
from app.server.calls.guarding import CallGuard
from app.server.calls.model import LoadedModel, check_length, loaded_model
from app.server.calls.prompts import chat_prompt
from app.server.calls.sampling import chat_sampling
from app.server.calls.structured import grammar_of
from app.server.process.context import ServerContext
from app.server.wire.schemas import ChatCompletionRequest, Message
from app.server.wire.usage import Usage
from engine.api.answer_parts import AnswerText
from engine.api.image import PlacedImage
from engine.retrieval.answering.answerer import DEFAULT_MAX_TOKENS, NOT_FOUND
from engine.text.answer_parser import PlainText


class ChatTurn:
    """One turn; either `pieces` or `answer` is to be called, once.

    A chat whose vector stores have nothing near enough to its question has no generation: the model is not
    asked, because it would answer from nothing, and a small one does not say so.

    Attributes:
        body: the request body.
        model: the model.
        generation: the running choices; None if the model is not asked.
        resources: to be closed, which also aborts running choices.
        usage: token counts so far.
    """

    def __init__(
        self,
        body: ChatCompletionRequest,
        model: LoadedModel,
        generation: Generation | None,
        sources: ChatSources | None,
        images: ChatImages | None,
    ) -> None:
        self.body = body
        self.model = model
        self.generation = generation
        self.resources = AsyncExitStack() if generation is None else generation.resources
        self.usage = Usage((), 1) if generation is None else Usage(generation.prompts, generation.n)
        self._sources = sources
        self._images = images
        self._choices: dict[int, ChatChoice] = {}

    @property
    def input_fields(self) -> dict[str, Any]:
        """Members of the answer that tell what the model reads beside the messages."""
        retrieval = {} if self._sources is None else self._sources.fields()
        images = {} if self._images is None else self._images.fields()
        return retrieval | images

    async def pieces(self) -> AsyncGenerator[TurnPiece, None]:
        """The pieces of all choices as they arrive; the last one of each choice has its end."""
        if self.generation is None:
            for index in range(self.body.choices):
                yield TurnPiece(index, [AnswerText(NOT_FOUND)], end=_not_found_end())
            return
        guard, choices = self.generation.guard, self.generation.choices
        async for index, batch in guard.batches(choices):
            choice = self._choice(index)
            if choice.ended:
                continue  # aborted below
            check_finish(batch)
            self.usage.add(index, batch)
            reason = batch.finish_reason and batch.finish_reason.value
            parts, reason = await choice.feed(batch.text, reason)
            if choice.ended:
                choices.abort_choice(index)
            end = None if reason is None else choice.end(reason, guard.found(index))
            yield TurnPiece(index, parts, batch, end)

    async def answer(self, request: Request, context: ServerContext) -> list[AnsweredChoice]:
        """The complete choices; waits for them while the client is connected.

        Raises:
            ClientDisconnected: the client disconnected.
            ApiError: a choice failed, or the drain expired.
        """
        if self.generation is None:
            end = _not_found_end()
            return [AnsweredChoice([AnswerText(NOT_FOUND)], end) for _ in range(self.body.choices)]
        outputs = await finish(request, context, self.generation)
        guard = self.generation.guard
        outputs = guard.outputs(outputs)
        self.usage.add_all(outputs)
        answered = []
        for index, output in enumerate(outputs):
            choice = self._choice(index)
            parts, reason = await choice.feed(output.text, output.finish_reason.value)
            end = choice.end(reason or "stop", guard.found(index))
            answered.append(AnsweredChoice(parts, end, output))
        return answered

    def _choice(self, index: int) -> ChatChoice:
        choice = self._choices.get(index)
        if choice is None:
            choice = self._choices[index] = ChatChoice(PlainText(), self._cited())
        return choice

    def _cited(self) -> CitedChoice | None:
        if self._sources is None:
            return None
        # The text must be that of the ids, or match the grammar that the request has given.
        keeps_text = bool(self.body.return_token_ids) or grammar_of(self.body) is not None
        return CitedChoice(self._sources, self.model, keeps_text=keeps_text)


def _not_found_end() -> ChoiceEnd:
    return ChoiceEnd("stop", [], {"retrieval": {"supported": False, "dropped_citations": []}})


async def begin_turn(
    request: Request, context: ServerContext, body: ChatCompletionRequest
) -> ChatTurn:
    """Check a chat request and submit its choices.

    Raises:
        ApiError: the request is refused.
        ClientDisconnected: the client left meanwhile.
        InvalidRequest, QueueFull, EngineUnavailable: from the engine.
    """
    model = loaded_model(context, body.model)
    sampling = chat_sampling(body, model.info)
    guard = CallGuard(context, body)
    images = await read_images(request, context, body, model)
    messages = body.messages
    if images is not None:
        messages = images.in_messages(messages, small=model.info.is_small)
        request.state.images = images.way
    sources = await find_sources(request, context, body, messages, model, images)
    if sources is not None:
        if not sources.numbered:
            return ChatTurn(body, model, None, sources, images)
        messages = with_sources(messages, sources.sources, model)
        sampling = replace(
            sampling,
            grammar=sampling.grammar or sources.grammar,
            max_tokens=DEFAULT_MAX_TOKENS if body.token_limit is None else sampling.max_tokens,
        )
    prompt = await _turn_prompt(context, body, model, messages, images, guard)
    request.state.guardrails = guard.header
    check_length(prompt.ids, model.info, param="messages")
    generation = await begin(
        request,
        context,
        body,
        [prompt.ids],
        sampling,
        guard,
        continued_tokens=prompt.continued_tokens,
        images=prompt.images,
    )
    return ChatTurn(body, model, generation, sources, images)


async def count_prompt_tokens(
    request: Request, context: ServerContext, body: ChatCompletionRequest
) -> int:
    """How many tokens the prompt of a chat without retrieval has; nothing is submitted.

    Raises:
        ApiError, ClientDisconnected, InvalidRequest: as `begin_turn`.
    """
    model = loaded_model(context, body.model)
    messages = body.messages
    images = await read_images(request, context, body, model)
    if images is not None:
        messages = images.in_messages(messages, small=model.info.is_small)
    guard = CallGuard(context, body)
    prompt = await _turn_prompt(context, body, model, messages, images, guard)
    return len(prompt.ids)


@dataclass(frozen=True, slots=True)
class _TurnPrompt:
    """Token ids of a turn's prompt, the last `continued_tokens` of which begin the answer; its images."""

    ids: tuple[int, ...]
    continued_tokens: int
    images: tuple[PlacedImage, ...]


async def _turn_prompt(
    context: ServerContext,
    body: ChatCompletionRequest,
    model: LoadedModel,
    messages: Sequence[Message],
    images: ChatImages | None,
    guard: CallGuard,
) -> _TurnPrompt:
    """The prompt of a turn whose messages may have been changed."""
    chat = await chat_prompt(model, messages, chat_form(body), check=guard.check_value)
    prompt, placed = chat.ids, tuple[PlacedImage, ...]()
    if images is not None:
        prompt, placed = await images.placed(context, prompt)
    return _TurnPrompt(prompt, chat.continued_tokens, placed)
