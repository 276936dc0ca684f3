"""A conversation as token ids in which no message can forge a control token.

A chat template yields one string, and encoding that string turns every spelled-out control token
into the real one, the user's `<|im_end|>` too. Here the control tokens of the result are exactly
the template's own, in order; what contents spell is ordinary text. Conversations that spell none
(nearly all) get the ids that encoding the whole rendering gives, which are the reference's.

The server, the screen and the commands all encode conversations here, so equal conversations have
equal ids whatever door they came through.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from engine.api.chat import ChatMessage
from engine.api.errors import InvalidRequest
from engine.text.control_tokens import ControlTokens, absent_character


class Encode(Protocol):
    """A tokenizer's way from text to ids."""

    def __call__(self, text: str, *, special: bool = False) -> list[int]:
        """Token ids of text; control tokens are recognised only with `special`."""
        ...


class Render(Protocol):
    """A model's chat template."""

    def __call__(
        self, messages: Sequence[ChatMessage], *, add_generation_prompt: bool = True
    ) -> str:
        """The template applied to messages."""
        ...


@dataclass(frozen=True, slots=True)
class ChatEncoder:
    """Encodes conversations for one model.

    Attributes:
        encode: its tokenizer.
        render: its chat template.
        controls: its control tokens.
    """

    encode: Encode
    render: Render
    controls: ControlTokens

    def encode_chat(
        self, messages: Sequence[ChatMessage], *, add_generation_prompt: bool = True
    ) -> list[int]:
        """Token ids of the rendered conversation.

        Raises:
            InvalidRequest: the template refuses the messages.
        """

        def place(contents: Sequence[str]) -> str:
            turns = [
                {**message, "content": content}
                for message, content in zip(messages, contents, strict=True)
            ]
            return self.render(turns, add_generation_prompt=add_generation_prompt)

        return self.encode_placed([message["content"] for message in messages], place)

    def encode_placed(
        self, contents: Sequence[str], place: Callable[[Sequence[str]], str]
    ) -> list[int]:
        """Token ids of `place(contents)`: its control tokens are those that `place` writes.

        Args:
            contents: text that is not trusted.
            place: writes them into a text; what it does must not depend on single characters. It
                is called again with guarded contents if any spells a control token.
        """
        text = guarded = place(contents)
        guard = None
        if any(map(self.controls.spelled_in, contents)):
            guard = absent_character(text + "".join(contents))
            if guard is None:
                raise InvalidRequest(
                    "The messages use every private character there is, so they cannot be told "
                    "apart from control tokens.",
                    param="messages",
                )
            guarded = place([self.controls.guard(content, guard) for content in contents])
        parts = self.controls.cut(guarded, guard)
        ids = self.encode(text, special=True)
        if self.controls.among(ids) == self._own(*(token for _, token in parts)):
            return ids
        return self._encode_apart(parts)

    def _encode_apart(self, parts: Sequence[tuple[str, str]]) -> list[int]:
        """Ids of (ordinary text, control token) pairs, of which some texts spell control tokens.

        Those texts alone are encoded by themselves; the others stay in their surroundings, since
        tokenizers may treat the beginning of a text, or spaces beside a control token, differently.
        """
        ids: list[int] = []
        stretch = before = ""
        for text, after in parts:
            seen = self.controls.among(self.encode(before + text + after, special=True))
            if seen == self._own(before, after):
                stretch += text
            else:
                ids += self._encode_trusted(stretch)
                ids += self.encode(text)
                stretch = ""
            stretch += after
            before = after
        return ids + self._encode_trusted(stretch)

    def _encode_trusted(self, text: str) -> list[int]:
        return self.encode(text, special=True) if text else []

    def _own(self, *tokens: str) -> list[int]:
        return [self.controls.spellings[token] for token in tokens if token]
