"""Other forms of a conversation, for chat templates that reject the usual one.

Many templates know no system message, or demand that user and assistant alternate: they were written for
conversations of two. Nothing of a message is left out, only where it stands changes.
"""

from collections.abc import Callable, Sequence
from typing import Any

from engine.api.chat import ChatMessage, has_images, text_of
from engine.api.errors import InvalidRequest

_BETWEEN = "\n\n"


def fold_system(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """The conversation with each system message at the beginning of the user's message after it.

    One that no message of the user follows becomes one of the user.
    """
    folded: list[ChatMessage] = []
    pending: Any = None
    for message in messages:
        if message["role"] == "system":
            pending = _joined(pending, message["content"])
            continue
        if pending is not None:
            if message["role"] == "user":
                message = {**message, "content": _joined(pending, message["content"])}
            else:
                folded.append({"role": "user", "content": pending})
            pending = None
        folded.append(message)
    if pending is not None:
        folded.append({"role": "user", "content": pending})
    return folded


def has_system_role(render: Callable[[Sequence[ChatMessage]], str]) -> bool:
    """Whether a chat template writes a system message as such, not at the beginning of the user's.

    Args:
        render: applies the template.
    """
    messages = [{"role": "system", "content": "x"}, {"role": "user", "content": "y"}]
    try:
        return render(messages) != render(fold_system(messages))
    except InvalidRequest:
        return False


def alternating(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """The conversation with one message in place of several of a role in a row.

    A system message that is not the first becomes one of the user. Tool calls and results are left as
    they are.
    """
    merged: list[ChatMessage] = []
    for message in messages:
        if message["role"] == "system" and any(one["role"] != "system" for one in merged):
            message = {**message, "role": "user"}
        last = merged[-1] if merged else None
        if (
            last is not None
            and _is_plain(last)
            and _is_plain(message)
            and last["role"] == message["role"]
        ):
            merged[-1] = {**last, "content": _joined(last["content"], message["content"])}
        else:
            merged.append(message)
    return merged


def with_single_texts(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """The conversation with one text in place of reasoning and text before a call, for gpt-oss's template."""
    single: list[ChatMessage] = []
    for message in messages:
        reasoning = message.get("reasoning_content")
        if reasoning and message["content"] and message.get("tool_calls"):
            content = _joined(reasoning, message["content"])
            message = {name: one for name, one in message.items() if name != "reasoning_content"}
            message["content"] = content
        single.append(message)
    return single


def without_empty_answers(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """The conversation without answers of no text and no call, which the template of Ministral 3 refuses."""
    return [
        one
        for one in messages
        if one["role"] != "assistant" or one["content"] or one.get("tool_calls")
    ]


def _is_plain(message: ChatMessage) -> bool:
    return message["role"] != "tool" and not message.get("tool_calls")


def _joined(first: Any, second: Any) -> Any:
    """Two contents as one; a content is a text, or parts."""
    if first is None:
        return second
    if not has_images({"content": first}) and not has_images({"content": second}):
        first, second = text_of(first), text_of(second)
        return first + _BETWEEN + second if first and second else first or second
    return [*_parts(first), {"type": "text", "text": _BETWEEN}, *_parts(second)]


def _parts(content: Any) -> list[Any]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)
