"""`ChatMessage`: one message of a chat."""

from collections.abc import Callable, Mapping
from typing import Any

ChatMessage = dict[str, Any]
"""`{"role": "system" | "user" | "assistant" | "tool", "content": text or parts}`.

Parts are those of Hugging Face's chat templates: `{"type": "text", "text": …}` and, for models that see
images, `{"type": "image"}`. The image itself is given beside the messages.

A message of the assistant may have `tool_calls`, a list of `{"id", "type": "function", "function": {"name",
"arguments"}}`; `arguments` is an object, as chat templates expect it. A message of a tool has the
`tool_call_id` of the call whose result it is, and may have the `name` of the tool. A message of the assistant
may have `reasoning_content`, its reasoning as a text, which most templates leave out.
"""

IMAGE_PART = {"type": "image"}
"""Stands for an image in the content of a message."""


def content_with_images(text: str, images: int) -> Any:
    """The content of a message: so many images, then a text; the text itself without images."""
    if not images:
        return text
    return [*(dict(IMAGE_PART) for _ in range(images)), {"type": "text", "text": text}]


def replace_content(content: Any, replace: Callable[[str], str]) -> Any:
    """A content with every text of it replaced, in its order."""
    if isinstance(content, str):
        return replace(content)
    return [
        {**part, "text": replace(part["text"])} if part.get("type") == "text" else part
        for part in content
    ]


def text_of(content: Any) -> str:
    """The texts of a content, joined."""
    if isinstance(content, str):
        return content
    return "".join(part["text"] for part in content if part.get("type") == "text")


def has_images(message: Mapping[str, Any]) -> bool:
    """Whether a part of the message is an image."""
    content = message["content"]
    return not isinstance(content, str) and any(part.get("type") == "image" for part in content)
