"""Content parts of the assistant that are no text: refusals and reasoning, as clients send them back.

OpenAI's parts of type `refusal` are text that the assistant said. Parts of type `thinking` (Anthropic's and
Mistral's) are its reasoning, and become the member `reasoning_content` of the message; those of type
`redacted_thinking` are encrypted, and no other server can read them.
"""

from typing import Any

_KINDS = frozenset({"refusal", "thinking", "redacted_thinking"})


def with_plain_parts(message: dict[str, Any]) -> dict[str, Any]:
    """The message with texts only in its content; unchanged if it has no such part.

    Raises:
        ValueError: a part lacks its text.
    """
    content = message.get("content")
    if not isinstance(content, list) or not any(_kind(part) in _KINDS for part in content):
        return message
    kept: list[Any] = []
    thoughts: list[str] = []
    for part in content:
        kind = _kind(part)
        if kind == "refusal":
            kept.append({"type": "text", "text": _text(part, kind)})
        elif kind == "thinking":
            thoughts.append(_text(part, kind))
        elif kind != "redacted_thinking":
            kept.append(part)
    plain = {**message, "content": kept}
    if thoughts and message.get("reasoning_content") is None:
        plain["reasoning_content"] = "".join(thoughts)
    return plain


def _kind(part: Any) -> str | None:
    kind = part.get("type") if isinstance(part, dict) else None
    return kind if isinstance(kind, str) else None


def _text(part: dict[str, Any], kind: str) -> str:
    """The text of a part, which Mistral divides into parts of type `text`."""
    text = part.get(kind)
    if isinstance(text, list) and all(isinstance(one, dict) for one in text):
        text = "".join(str(one.get("text", "")) for one in text)
    if not isinstance(text, str):
        raise ValueError(f"a content part of type {kind!r} needs its text as `{kind}`")
    return text
