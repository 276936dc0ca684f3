"""Where each message's content lies in a rendered chat.

A chat template is a program: only running it tells what it does. It is run twice, once on the
real messages and once on placeholders that no template treats specially. The second rendering
gives the scaffolding between the contents; the first must then be that scaffolding with each
content, as it is or stripped (`| trim`), in its place. If it is not, the template rewrites contents
(Qwen3 removes earlier thoughts) and there is no layout.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from engine.api.chat import ChatMessage

Render = Callable[[Sequence[ChatMessage]], str]

# Private-use characters: no white space for `trim`, no case, no meaning in any markup.
_OPEN, _CLOSE = "\uf8f0", "\uf8f1"
_PLACEHOLDER = re.compile(f"{_OPEN}([0-9]+){_CLOSE}")

_VARIANTS: tuple[Callable[[str], str], ...] = (str, str.strip, str.rstrip, str.lstrip)


@dataclass(frozen=True, slots=True)
class Scaffold:
    """Text that the template wrote."""

    text: str


@dataclass(frozen=True, slots=True)
class Content:
    """Text of message `index`, as the template placed it."""

    index: int
    text: str


Piece = Scaffold | Content


def chat_layout(messages: Sequence[ChatMessage], render: Render) -> list[Piece] | None:
    """The rendering of `messages` in pieces, or None if the template rewrites contents.

    Joining the pieces' texts gives exactly `render(messages)`. Costs two renderings.

    Raises:
        InvalidRequest: the template refuses the messages.
    """
    rendering = render(messages)
    marked = render(
        [
            {**message, "content": f"{_OPEN}{index}{_CLOSE}"}
            for index, message in enumerate(messages)
        ]
    )
    parts = _PLACEHOLDER.split(marked)
    scaffolds, indices = parts[::2], [int(index) for index in parts[1::2]]
    if indices != list(range(len(messages))):
        return None
    return _align(rendering, scaffolds, [message["content"] for message in messages])


def _align(rendering: str, scaffolds: list[str], contents: list[str]) -> list[Piece] | None:
    """Place each content, as it is or stripped, between its scaffolds; None if they don't fit.

    Takes the first variant that fits. The variants differ in white space at the ends alone, so
    another choice could only matter between scaffolds that are themselves white space.
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
