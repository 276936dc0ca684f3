"""`ChatEncoder`: encodes a conversation so that no message can inject a control token.

A chat template renders one string, and encoding that string turns every spelling of a control token
into the token, including an `<|im_end|>` in a user's message. Here the control tokens of the result are
exactly those that the template writes; spellings in contents and in tool calls are encoded as ordinary
text. Without such spellings, the common case, the ids are those of the whole rendering, as in the
reference implementation.

The server, the screen and the commands all encode conversations here, so equal conversations have equal
ids.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Protocol

from engine.api.chat import ChatMessage
from engine.api.errors import InvalidRequest
from engine.text.continued_message import Render, render_open
from engine.text.control_tokens import ControlTokens, absent_character
from engine.text.tool_messages import (
    TemplateTool,
    nested_too_deep,
    replace_in_value,
    replace_texts,
    texts_in,
)


def encode_rest(encode: Callable[[str], list[int]], text: str) -> list[int]:
    """Token ids of text that continues another: without the space that SentencePiece adds to a text."""
    start, ids = encode("\n"), encode("\n" + text)
    return ids[len(start) :] if ids[: len(start)] == start else encode(text)


class Encode(Protocol):
    """The encoding function of a tokenizer."""

    def __call__(self, text: str, *, special: bool = False) -> list[int]:
        """Token ids of text; control tokens are recognised only with `special`."""
        ...


@dataclass(frozen=True, slots=True)
class ChatEncoder:
    """Encodes conversations for one model.

    Attributes:
        encode: the tokenizer.
        render: the chat template.
        controls: the control tokens.
        tools: what the model may call.
        render_with: the chat template for conversations with tools.
    """

    encode: Encode
    render: Render
    controls: ControlTokens
    tools: Sequence[TemplateTool] = ()
    render_with: Callable[[Sequence[TemplateTool]], Render] | None = None

    def encode_chat(
        self, messages: Sequence[ChatMessage], *, add_generation_prompt: bool = True
    ) -> list[int]:
        """Token ids of the rendered conversation.

        Raises:
            InvalidRequest: the template rejects the messages, or one is not valid Unicode.
        """
        return self.encode_rendering(
            messages,
            lambda turns, render: render(turns, add_generation_prompt=add_generation_prompt),
        )

    def encode_open(self, messages: Sequence[ChatMessage]) -> tuple[list[int], int]:
        """Token ids of a conversation whose last message the model continues.

        Returns:
            The ids, and how many of the last ones are the beginning of the answer.

        Raises:
            InvalidRequest: as `encode_chat`, or the last message cannot be continued.
        """

        @cache
        def rendered(given: tuple[str, ...]) -> tuple[str, str]:
            return render_open(*self._with_texts(messages, given))

        try:
            texts = self._texts(messages)
            before = self.encode_contents(texts, lambda given: rendered(tuple(given))[0])
            ids = self.encode_contents(texts, lambda given: "".join(rendered(tuple(given))))
        except RecursionError as error:
            raise nested_too_deep() from error
        if ids[: len(before)] == before:
            return ids, len(ids) - len(before)
        # A token would reach across the beginning; the model itself writes none that does.
        begun = encode_rest(self.encode, rendered(tuple(texts))[1])
        return before + begun, len(begun)

    def encode_rendering(
        self,
        messages: Sequence[ChatMessage],
        write: Callable[[Sequence[ChatMessage], Render], str],
    ) -> list[int]:
        """Token ids of what `write` makes of the messages with the chat template.

        Raises:
            InvalidRequest: as `encode_chat`, or from `write`.
        """
        try:
            return self.encode_contents(
                self._texts(messages), lambda given: write(*self._with_texts(messages, given))
            )
        except RecursionError as error:
            raise nested_too_deep() from error

    def _texts(self, messages: Sequence[ChatMessage]) -> list[str]:
        """Every text of the messages and the tools, which others wrote, in a fixed order."""
        texts = texts_in(messages)

        def collect(text: str) -> str:
            texts.append(text)
            return text

        for tool in self.tools:
            replace_in_value(tool, collect)
        return texts

    def _with_texts(
        self, messages: Sequence[ChatMessage], texts: Sequence[str]
    ) -> tuple[list[ChatMessage], Render]:
        """The messages, and the chat template with the tools, with texts in place of their own."""
        given = iter(texts)
        turns = [replace_texts(message, lambda _: next(given)) for message in messages]
        tools = [replace_in_value(tool, lambda _: next(given)) for tool in self.tools]
        if self.render_with is None or not tools:
            return turns, self.render
        return turns, self.render_with(tools)

    def encode_contents(
        self, contents: Sequence[str], render: Callable[[Sequence[str]], str]
    ) -> list[int]:
        """Token ids of `render(contents)`, whose control tokens are those that `render` writes.

        Args:
            contents: untrusted text.
            render: writes the contents into a text, independently of their single characters. It is
                called again with guarded contents if one of them spells a control token.

        Raises:
            InvalidRequest: `render` rejects the contents, or one is not valid Unicode.
        """
        text = guarded = render(contents)
        guard = None
        if any(map(self.controls.is_spelled_in, contents)):
            guard = absent_character(text + "".join(contents))
            if guard is None:
                raise InvalidRequest(
                    "The messages contain all private-use characters of plane 15, so control tokens "
                    "in them cannot be marked: remove one of the characters.",
                    param="messages",
                )
            guarded = render([self.controls.insert_guard(one, guard) for one in contents])
        parts = self.controls.split(guarded, guard)
        ids = self.encode(text, special=True)
        if self.controls.select(ids) == self._control_ids(*(token for _, token in parts)):
            return ids
        return self._encode_parts(parts)

    def _encode_parts(self, parts: Sequence[tuple[str, str]]) -> list[int]:
        """Ids of (ordinary text, control token) pairs, some of whose texts spell control tokens.

        Only those texts are encoded separately. The others are encoded with the text around them,
        because tokenizers may treat the start of a text, or spaces beside a control token, specially.
        """
        ids: list[int] = []
        pending = previous = ""
        for text, token in parts:
            found = self.controls.select(self.encode(previous + text + token, special=True))
            if found == self._control_ids(previous, token):
                pending += text
            else:
                ids += self._encode_trusted(pending)
                ids += self.encode(text)
                pending = ""
            pending += token
            previous = token
        return ids + self._encode_trusted(pending)

    def _encode_trusted(self, text: str) -> list[int]:
        return self.encode(text, special=True) if text else []

    def _control_ids(self, *tokens: str) -> list[int]:
        return [self.controls.spellings[token] for token in tokens if token]
