"""Rendering of a conversation whose last message is left open, so that the model continues it.

The template writes the whole conversation, with a mark at the end of the last message, and the text is cut
at the mark. So the message has what the template writes before its contents, and neither the end of the
turn nor a new turn follows. Of the text before the mark, the part that is equal to the end of the message
is the beginning of the answer; a template may trim or rewrite what precedes it.
"""

from collections.abc import Sequence
from typing import Protocol

from engine.api.chat import ChatMessage, has_images, text_of
from engine.api.errors import InvalidRequest
from engine.text.control_tokens import absent_character
from engine.text.tool_messages import texts_in


class Render(Protocol):
    """A model's chat template."""

    def __call__(
        self, messages: Sequence[ChatMessage], *, add_generation_prompt: bool = True
    ) -> str:
        """The template applied to messages."""
        ...


def render_open(messages: Sequence[ChatMessage], render: Render) -> tuple[str, str]:
    """The rendering up to the end of the last message: what precedes the answer's beginning, and that.

    Raises:
        InvalidRequest: the last message has images or tool calls, or the template does not write it.
    """
    last = messages[-1]
    if has_images(last) or last.get("tool_calls"):
        raise InvalidRequest(
            "A message with images or tool calls cannot be continued.", param="messages"
        )
    content = text_of(last["content"])
    mark = absent_mark(messages)
    marked = [*messages[:-1], {**last, "content": content + mark}]
    text, found, _ = render(marked, add_generation_prompt=False).rpartition(mark)
    if not found:
        raise InvalidRequest(
            "The model's chat template does not write the last message, so it cannot be continued.",
            param="messages",
        )
    begun = _length_at_end(text, content)
    return text[: len(text) - begun], text[len(text) - begun :]


def absent_mark(messages: Sequence[ChatMessage]) -> str:
    """A character that no message contains.

    Raises:
        InvalidRequest: there is none.
    """
    mark = absent_character("".join(texts_in(messages)))
    if mark is None:
        raise InvalidRequest(
            "The messages contain all private-use characters of plane 15: remove one of them.",
            param="messages",
        )
    return mark


def _length_at_end(text: str, content: str) -> int:
    """How many characters at the end of a text are those at the end of a content."""
    if text.endswith(content):
        return len(content)
    length, most = 0, min(len(text), len(content))
    while length < most and text[-1 - length] == content[-1 - length]:
        length += 1
    # The spaces before what a template has trimmed or cut are as likely its own.
    return len(content[len(content) - length :].lstrip())
