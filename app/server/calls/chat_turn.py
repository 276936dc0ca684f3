"""`ChatTurn`: one turn of the assistant, from a request body to the parts of its answer.

Every face of the server that speaks of messages and answers makes a `ChatCompletionRequest` of its own
request, begins a turn and formats what the turn yields.
"""

import asyncio
import uuid
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any

from starlette.requests import Request

from app.server.calls.call_check import CallCheck
from app.server.calls.chat_choice import AnsweredChoice, ChatChoice, ChoiceEnd, TurnPiece
from app.server.calls.chat_form import chat_form
from app.server.calls.chat_images import ChatImages, read_images
from app.server.calls.chat_sources import ChatSources, find_sources, with_sources
from app.server.calls.cited_choice import CitedChoice
from app.server.calls.generation import Generation, begin, check_finish, finish
from app.server.calls.guarding import CallGuard
from app.server.calls.model import LoadedModel, check_length, loaded_model
from app.server.calls.reasoning import chat_reasoning
from app.server.calls.request_session import request_session
from app.server.calls.sampling import chat_sampling
from app.server.calls.structured import grammar_of
from app.server.calls.tool_calling import turn_planner, turn_tools
from app.server.calls.turn_prompt import turn_prompt
from app.server.calls.turn_record import TurnRecord
from app.server.process.context import ServerContext
from app.server.process.sessions import branch_name, session_name
from app.server.wire.errors import bad_request
from app.server.wire.fields import header_value
from app.server.wire.schemas import ChatCompletionRequest
from app.server.wire.usage import Usage
from engine.api.answer_parts import AnswerText
from engine.api.request import RequestOutput, SamplingParams, TokenBatch
from engine.grammar.call_plan import CallPlanner
from engine.grammar.turn_tools import TurnTools
from engine.retrieval.answering.answerer import DEFAULT_MAX_TOKENS, NOT_FOUND
from engine.text.answer_parser import AnswerParser, PlainText
from engine.text.model_reasoning import ModelReasoning
from engine.text.tool_calls.forms.harmony import HARMONY


class ChatTurn:
    """One turn; either `pieces` or `answer` is to be called, once.

    A chat whose vector stores have nothing near enough to its question has no generation: the model is not
    asked, because it would answer from nothing, and a small one does not say so.

    Attributes:
        id: OpenAI's id of the completion.
        body: the request body.
        model: the model.
        generation: the running choices; None if the model is not asked.
        resources: to be closed, which also aborts running choices.
        usage: token counts so far.
        record: keeps the tokens of the answer for the next turn; None keeps none.
    """

    record: TurnRecord | None = None

    def __init__(
        self,
        body: ChatCompletionRequest,
        model: LoadedModel,
        generation: Generation | None,
        sources: ChatSources | None,
        images: ChatImages | None,
        tools: TurnTools | None = None,
        planner: CallPlanner | None = None,
        reasoning: ModelReasoning | None = None,
    ) -> None:
        self.id = f"chatcmpl-{uuid.uuid4().hex}"
        self.body = body
        self.model = model
        self.generation = generation
        self.resources = AsyncExitStack() if generation is None else generation.resources
        self.usage = Usage((), 1) if generation is None else Usage(generation.prompts, generation.n)
        self._sources = sources
        self._images = images
        self._reasoning = reasoning
        self._tools = tools
        self._planner = planner
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
            self._count(choice, index, batch)
            reason = batch.finish_reason and batch.finish_reason.value
            parts, reason = await choice.feed(batch.text, reason)
            if choice.ended:
                choices.abort_choice(index)
            end = None if reason is None else choice.end(reason, guard.found(index))
            if self.record is not None:
                self.record.add(choice, parts, batch, end)
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
        answered = []
        for index, output in enumerate(guard.outputs(outputs)):
            choice = self._choice(index)
            self._count(choice, index, output)
            parts, reason = await choice.feed(output.text, output.finish_reason.value)
            end = choice.end(reason or "stop", guard.found(index))
            if self.record is not None:
                self.record.add(choice, parts, output, end)
            answered.append(AnsweredChoice(parts, end, output))
        request.state.invalid_arguments = _invalid_arguments(answered)
        return answered

    @property
    def request_ids(self) -> list[str]:
        """The engine's ids of the choices; none before they begin."""
        return [] if self.generation is None else self.generation.choices.request_ids

    async def end_reasoning(self) -> bool:
        """End the reasoning of all choices; False if none reasons now, or the request cannot be told."""
        engine = self.model.engine
        ended = [engine.end_reasoning(one) for one in self.request_ids]
        return any(await asyncio.gather(*map(asyncio.wrap_future, ended)))

    def _count(self, choice: ChatChoice, index: int, part: RequestOutput | TokenBatch) -> None:
        self.usage.add(index, part)
        if choice.reasoning is not None:
            before = choice.reasoning.count
            choice.reasoning.feed(part.token_ids)
            self.usage.add_reasoning(choice.reasoning.count - before)

    def _choice(self, index: int) -> ChatChoice:
        choice = self._choices.get(index)
        if choice is None:
            choice = self._choices[index] = self._new_choice()
        return choice

    def _new_choice(self) -> ChatChoice:
        parser = self._parser()
        check = None
        if self._tools is not None and self._tools.callable:
            check = CallCheck(self._tools.callable)
        if self._reasoning is None:
            return ChatChoice(parser, self._cited(), check=check)
        return ChatChoice(
            parser if self.body.reasoning_stays_in_text else self._reasoning.parser(parser),
            self._cited(),
            self._reasoning.tokens(),
            check,
            shows_reasoning=self.body.reasoning_is_shown,
        )

    def _parser(self) -> AnswerParser:
        if self._planner is not None:
            return self._planner.parser()
        if self._tools is not None:
            return self._tools.parser()
        if self._reasoning is None or self.body.reasoning_stays_in_text:
            return PlainText()
        return self._reasoning.plain_parser()

    def _cited(self) -> CitedChoice | None:
        if self._sources is None:
            return None
        # The text must be that of the ids, or match the grammar that the request has given.
        keeps_text = bool(self.body.return_token_ids) or grammar_of(self.body) is not None
        return CitedChoice(self._sources, self.model, keeps_text=keeps_text)


def _invalid_arguments(answered: Sequence[AnsweredChoice]) -> str:
    """The value of the header that names the tools whose arguments are not valid; empty for none."""
    calls = [call for one in answered for call in one.end.fields.get("invalid_tool_calls", ())]
    return header_value(sorted({call["name"] for call in calls}))


def _not_found_end() -> ChoiceEnd:
    return ChoiceEnd("stop", [], {"retrieval": {"supported": False, "dropped_citations": []}})


async def begin_turn(
    request: Request,
    context: ServerContext,
    body: ChatCompletionRequest,
    *,
    in_loop: bool = False,
    in_words: bool = False,
) -> ChatTurn:
    """Check a chat request and submit its choices.

    Args:
        request: the HTTP request.
        context: the server.
        body: the chat request.
        in_loop, in_words: as in `CallPlanner`, of a round of a tool loop.

    Raises:
        ApiError: the request is refused.
        ClientDisconnected: the client left meanwhile.
        InvalidRequest, QueueFull, EngineUnavailable: from the engine.
    """
    model = loaded_model(context, body.model)
    sampling = chat_sampling(body, model.info)
    tools = turn_tools(context, body, model)
    if body.skipped_tools:
        request.state.skipped_tools = header_value(body.skipped_tools)
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
    if tools is not None:
        sampling = _showing(sampling, tools.shown_control_ids)
    form = chat_form(body)
    keeps = images is None and sources is None
    prompt = await turn_prompt(
        context, body, form, model, messages, images, guard, tools, is_kept=keeps
    )
    request.state.guardrails = guard.header
    chat, ids = prompt.chat, prompt.ids
    reasoning = chat_reasoning(model, chat)
    if reasoning is not None and reasoning.markers.is_message and tools is not None:
        # A form that was chosen for a model of this kind does not divide its messages.
        reasoning = reasoning if tools.form is HARMONY else None
    planner = None
    if tools is not None and not chat.continued_tokens and sources is None:
        planner = turn_planner(body, model, tools, form, ids, in_loop=in_loop, in_words=in_words)
    if planner is None and tools is not None and tools.is_forced:
        if chat.continued_tokens:
            raise bad_request(
                "An answer whose beginning is given cannot be a call.", param="tool_choice"
            )
        ids += tools.opening_ids(ids)
        sampling, reasoning = replace(sampling, grammar=tools.grammar()), None
    check_length(ids, model.info, param="messages")
    name, branch = "", None
    if chat.key is not None:
        given = request_session(request, context, body.session)
        name = session_name(given, chat.key.beginning)
        branch = branch_name(name, chat.key.beginning)
    if reasoning is not None:
        controls = model.tokenizer.control_tokens.ids
        sampling = _showing(sampling, reasoning.shown_control_ids(controls))
        if _needs_control(body, sampling):
            sampling = replace(sampling, reasoning=reasoning.control(body.reasoning_limit))
    generation = await begin(
        request,
        context,
        body,
        [ids],
        sampling,
        guard,
        continued_tokens=chat.continued_tokens,
        images=prompt.images,
        planner=planner,
        goes_on=in_loop,
        session=branch,
        may_be_held=tools is not None,
    )
    turn = ChatTurn(body, model, generation, sources, images, tools, planner, reasoning)
    if chat.key is not None and branch is not None and generation.n == 1:
        turn.record = TurnRecord(
            context, model, ids, chat.key, (name, branch), sampling.stop_token_ids, planner
        )
    context.running_turns[turn.id] = turn
    turn.resources.callback(context.running_turns.pop, turn.id, None)
    return turn


def _showing(sampling: SamplingParams, control_ids: frozenset[int]) -> SamplingParams:
    """The parameters with which these control tokens, too, are part of the text."""
    shown = control_ids.union(sampling.shown_control_ids)
    return replace(sampling, shown_control_ids=tuple(sorted(shown)))


def _needs_control(body: ChatCompletionRequest, sampling: SamplingParams) -> bool:
    """Whether the engine must know of the reasoning; it proposes no draft tokens then."""
    return (
        sampling.grammar is not None
        or body.reasoning_limit is not None
        or bool(body.reasoning_control)
    )
