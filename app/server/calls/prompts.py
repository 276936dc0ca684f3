"""Prompts of a request as token ids: raw text, token ids, or messages in the chat template."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import orjson

from app.server.calls.chat_form import ChatForm, LastTurn
from app.server.calls.model import OFF_LOOP_CHARS, LoadedModel, off_loop
from app.server.process.answered_turns import AnsweredTurns, ConversationKey
from app.server.wire.errors import bad_request
from app.server.wire.json_size import check_json_size
from app.server.wire.schemas import Message, Prompt, TextPart
from engine.api.chat import IMAGE_PART, ChatMessage, replace_content
from engine.text.infill import InfillTokens
from engine.text.tool_messages import TemplateTool

TURN_COST_CHARS = 64
"""Cost of rendering one message, in characters of tokenising."""


@dataclass(frozen=True, slots=True)
class ChatPrompt:
    """A rendered conversation as token ids.

    Attributes:
        ids: the token ids.
        continued_tokens: how many of the last ones begin the answer.
        key: under which the answered conversation is kept; None if it is not.
    """

    ids: tuple[int, ...]
    continued_tokens: int = 0
    key: ConversationKey | None = None


async def chat_prompt(
    model: LoadedModel,
    messages: Sequence[Message],
    form: ChatForm,
    *,
    tools: Sequence[TemplateTool] = (),
    check: Callable[[Any], Any] = lambda content: content,
    answered: AnsweredTurns | None = None,
    cache_salt: str | None = None,
) -> ChatPrompt:
    """The prompt of a conversation.

    Args:
        model: the model.
        messages: the conversation.
        form: how it ends, and variables for the template.
        tools: what the model may call.
        check: what the model reads in place of a content or a call's arguments.
        answered: conversations whose token ids are kept; None encodes every message.
        cache_salt: of the request, whose conversations are its own.

    Raises:
        ApiError: 400 for fields that contradict each other.
        InvalidRequest: the chat template rejects the messages.
    """
    given, turn = form.applied_to(messages)

    def encode() -> ChatPrompt:
        checked = [_checked(message, check) for message in template_messages(given)]

        def encode_turns(add_generation_prompt: bool) -> list[int]:
            return model.tokenizer.encode_chat(
                checked,
                add_generation_prompt=add_generation_prompt,
                tools=tools,
                variables=form.variables,
            )

        if turn is LastTurn.OPEN:
            ids, begun = model.tokenizer.encode_open_chat(
                checked, tools=tools, variables=form.variables
            )
            return ChatPrompt(tuple(ids), begun)
        if answered is None or turn is not LastTurn.ANSWER:
            return ChatPrompt(tuple(encode_turns(turn is LastTurn.ANSWER)))
        made_of = {
            "model": [model.info.name, model.fingerprint, cache_salt],
            "tools": list(tools),
            "variables": dict(form.variables),
        }
        key = ConversationKey(checked, made_of)
        found = answered.find(key)
        if found is None:
            return ChatPrompt(tuple(encode_turns(True)), key=key)
        known = model.tokenizer.encode_chat_after(
            checked, found.answer, found.ids, tools=tools, variables=form.variables
        )
        if known is None:
            return ChatPrompt(tuple(encode_turns(True)), key=key)
        return ChatPrompt(tuple(known), key=key)

    size = OFF_LOOP_CHARS if tools else chat_size(messages)
    return await off_loop(size, encode)


async def chat_text(
    model: LoadedModel,
    messages: Sequence[Message],
    form: ChatForm,
    *,
    tools: Sequence[TemplateTool] = (),
) -> str:
    """The text of a conversation's prompt.

    Raises:
        ApiError, InvalidRequest: as `chat_prompt`.
    """
    given, turn = form.applied_to(messages)

    def render() -> str:
        conversation = template_messages(given)
        if turn is LastTurn.OPEN:
            return model.tokenizer.render_open_chat(
                conversation, tools=tools, variables=form.variables
            )
        return model.tokenizer.render_chat(
            conversation,
            add_generation_prompt=turn is LastTurn.ANSWER,
            tools=tools,
            variables=form.variables,
        )

    size = OFF_LOOP_CHARS if tools else chat_size(messages)
    return await off_loop(size, render)


def _checked(message: ChatMessage, check: Callable[[Any], Any]) -> ChatMessage:
    """A message with its content, and the arguments of its calls, checked."""
    turn: ChatMessage = {**message, "content": replace_content(message["content"], check)}
    if "reasoning_content" in message:
        turn["reasoning_content"] = check(message["reasoning_content"])
    if "tool_calls" in message:
        turn["tool_calls"] = [
            {
                **call,
                "function": {**call["function"], "arguments": check(call["function"]["arguments"])},
            }
            for call in message["tool_calls"]
        ]
    return turn


def chat_size(messages: Sequence[Message]) -> int:
    """Cost of rendering a conversation, in characters of tokenising."""
    texts = sum(len(one.text) + len(one.thoughts) for one in messages)
    calls = [call.function.arguments for one in messages for call in one.tool_calls or ()]
    # The size of an object is not known: assume that it is large.
    arguments = sum(len(one) if isinstance(one, str) else OFF_LOOP_CHARS for one in calls)
    return texts + arguments + TURN_COST_CHARS * (len(messages) + len(calls))


def template_messages(
    messages: Sequence[Message], *, reads_arguments: bool = True
) -> list[ChatMessage]:
    """Messages as chat templates expect them; `developer` is OpenAI's newer name of `system`.

    A tool's result has the name of the tool, which some templates write. Without `reads_arguments` those of
    calls stay the JSON text that they were sent as, which costs no parsing.
    """
    names: dict[str, str] = {}
    turns = []
    for message in messages:
        names |= {call.id: call.function.name for call in message.tool_calls or ()}
        turn = _template_message(message, reads_arguments=reads_arguments)
        if message.tool_call_id in names:
            turn["name"] = names[message.tool_call_id]
        turns.append(turn)
    return turns


def _template_message(message: Message, *, reads_arguments: bool) -> ChatMessage:
    role = "system" if message.role == "developer" else message.role
    turn: ChatMessage = {"role": role, "content": _content(message)}
    if message.thoughts:
        turn["reasoning_content"] = message.thoughts
    if message.tool_calls:
        turn["tool_calls"] = [
            {
                "id": call.id,
                "type": call.type,
                "function": {
                    "name": call.function.name,
                    "arguments": arguments_of(call.function.arguments)
                    if reads_arguments
                    else call.function.arguments,
                },
            }
            for call in message.tool_calls
        ]
    if message.tool_call_id is not None:
        turn["tool_call_id"] = message.tool_call_id
    return turn


def _content(message: Message) -> Any:
    """A text, or with images the parts that chat templates expect, in the order of the message."""
    if not message.has_images:
        return message.text
    return [
        {"type": "text", "text": part.text} if isinstance(part, TextPart) else dict(IMAGE_PART)
        for part in message.content
    ]


def arguments_of(given: str | dict[str, Any]) -> str | dict[str, Any]:
    """The object that templates expect; text that is none, which a model may write, is kept.

    Raises:
        ApiError: 400 for an object of too many values.
    """
    if isinstance(given, str):
        check_json_size(given.encode(), param="messages")
        with suppress(orjson.JSONDecodeError):
            parsed = orjson.loads(given)
            return parsed if isinstance(parsed, dict) else given
    return given


async def prompt_ids(
    model: LoadedModel,
    prompt: Prompt,
    *,
    add_bos: bool,
    check: Callable[[str], str] = lambda text: text,
) -> tuple[int, ...]:
    """Token ids of one prompt; a prompt given as token ids is checked and returned unchanged.

    `check` returns what the model reads in place of a prompt given as text.

    Raises:
        ApiError: 400 for an id outside the vocabulary.
    """
    vocab_size = model.info.vocab_size
    if isinstance(prompt, str):
        text = await off_loop(len(prompt), lambda: check(prompt))
        return tuple(await text_ids(model, text, add_bos=add_bos, special=True))
    outside = next((one for one in prompt if not 0 <= one < vocab_size), None)
    if outside is not None:
        raise bad_request(
            f"`prompt` has token id {outside}, outside the vocabulary of {vocab_size}.",
            param="prompt",
        )
    return tuple(prompt)


async def infill_ids(
    model: LoadedModel,
    tokens: InfillTokens,
    prompt: Prompt,
    suffix: str,
    *,
    add_bos: bool,
    check: Callable[[str], str] = lambda text: text,
) -> tuple[int, ...]:
    """Token ids of the prompt for the text between `prompt` and `suffix`.

    Spellings of control tokens in either are ordinary text: they are a document's.

    Raises:
        ApiError: 400 for an id outside the vocabulary.
    """
    tokenizer = model.tokenizer
    if isinstance(prompt, str):
        before: Sequence[int] = await off_loop(
            len(prompt), lambda: tokenizer.encode(check(prompt)) if prompt else []
        )
    else:
        before = await prompt_ids(model, prompt, add_bos=False)
    after = await off_loop(len(suffix), lambda: tokenizer.encode_rest(check(suffix)))
    ids = tokens.prompt(before, after)
    bos = tokenizer.bos_id
    return (bos, *ids) if add_bos and tokenizer.add_bos and bos is not None else tuple(ids)


async def text_ids(model: LoadedModel, text: str, *, add_bos: bool, special: bool) -> list[int]:
    """Token ids of raw text, preceded by the model's BOS token if it uses one."""
    tokenizer = model.tokenizer
    ids = await off_loop(len(text), lambda: tokenizer.encode(text, special=special))
    bos = tokenizer.bos_id
    # A prompt whose text begins with the token has it already.
    if add_bos and tokenizer.add_bos and bos is not None and ids[:1] != [bos]:
        return [bos, *ids]
    return ids
