"""`chat_layout`: the positions of the messages' contents in a rendered chat.

The template is rendered twice, once with the messages and once with placeholders as contents. The second
rendering gives the scaffolding between the contents. The first must equal that scaffolding with each
content, unchanged or stripped (`| trim`), in place of its placeholder. Otherwise the template rewrites
contents (Qwen3 removes earlier reasoning) and there is no layout. What the template writes for an image is
scaffolding.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from engine.api.chat import ChatMessage, replace_content, text_of

Render = Callable[[Sequence[ChatMessage]], str]

# Private-use characters: not whitespace for `trim`, without case, without meaning in markup.
_OPEN, _CLOSE = "\uf8f0", "\uf8f1"
_PLACEHOLDER = re.compile(f"{_OPEN}([0-9]+){_CLOSE}")

_VARIANTS: tuple[Callable[[str], str], ...] = (str, str.strip, str.rstrip, str.lstrip)


@dataclass(frozen=True, slots=True)
class Scaffold:
    """Text written by the template."""

    text: str


@dataclass(frozen=True, slots=True)
class Content:
    """The content of message `index` as rendered."""

    index: int
    text: str


Piece = Scaffold | Content


def chat_layout(messages: Sequence[ChatMessage], render: Render) -> list[Piece] | None:
    """The rendering of `messages` in pieces, or None if the template rewrites contents.

    The concatenated texts of the pieces equal `render(messages)`. Cost: two renderings.

    Raises:
        InvalidRequest: the template rejects the messages.
    """
    rendering = render(messages)
    marked = render(
        [
            {
                **message,
                "content": replace_content(message["content"], partial(_mark, index)),
            }
            for index, message in enumerate(messages)
        ]
    )
    parts = _PLACEHOLDER.split(marked)
    scaffolds, indices = parts[::2], [int(index) for index in parts[1::2]]
    if indices != list(range(len(messages))):
        return None
    return _align(rendering, scaffolds, [text_of(message["content"]) for message in messages])


def _mark(index: int, _: str) -> str:
    return f"{_OPEN}{index}{_CLOSE}"


def _align(rendering: str, scaffolds: list[str], contents: list[str]) -> list[Piece] | None:
    """Match each content, unchanged or stripped, between its scaffolds; None if there is no match.

    The first matching variant is taken. Variants differ only in whitespace at the ends, so the choice
    matters only between scaffolds that are themselves whitespace.
    """
    if not rendering.startswith(scaffolds[0]):
        return None
    pieces: list[Piece] = [Scaffold(scaffolds[0])]
    at = len(scaffolds[0])
    for index, content in enumerate(contents):
        after = scaffolds[index + 1]
        for variant in _VARIANTS:
            text = variant(content)
            if rendering.startswith(text + after, at):
                break
        else:
            return None
        at += len(text) + len(after)
        pieces += (Content(index, text), Scaffold(after))
    return pieces if at == len(rendering) else None
