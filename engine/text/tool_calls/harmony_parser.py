"""`HarmonyParser`: divides an answer of gpt-oss into reasoning, text and calls of tools.

Its answers are messages, each `header<|message|>content` and an end. The header names a channel (`analysis`
is reasoning, `commentary` and `final` are text) and may name a recipient, `to=functions.NAME`: then the
content is the arguments of a call. The answer begins inside the first header, after `<|start|>assistant`.
"""

import re
from collections.abc import Mapping, Sequence

from engine.api.answer_parts import AnswerPart, AnswerReasoning, AnswerText
from engine.api.tools import Tool
from engine.text.tool_calls.call_ids import new_call_id
from engine.text.tool_calls.call_sink import CallSink
from engine.text.tool_calls.characters import Characters, Reading, Unreadable
from engine.text.tool_calls.joined_parts import join_parts
from engine.text.tool_calls.literals import write_value

MESSAGE = "<|message|>"
_ENDS = ("<|end|>", "<|return|>", "<|call|>")
_BEGINS = ("<|start|>", "<|channel|>")
MARKS = (*_BEGINS, "<|constrain|>", MESSAGE, *_ENDS)
_MAX_HEADER = 512
_CHANNEL = re.compile(r"<\|channel\|>\s*(\w+)")
_RECIPIENT = re.compile(r"to=functions\.([^\s<]+)")


class HarmonyParser:
    """The parser of one answer.

    Attributes:
        ended: whether the only call that the answer may have is complete.
    """

    def __init__(self, tools: Mapping[str, Tool], *, parallel: bool = True) -> None:
        """Find calls of `tools`; without `parallel`, the answer ends after the first."""
        self.ended = False
        self._parallel = parallel
        self._parts: list[AnswerPart] = []
        self._sink = CallSink(tools, new_call_id)
        self._sink.at_end = self._call_ended
        self._chars = Characters()
        self._reader: Reading[None] | None = self._read()
        next(self._reader)

    def feed(self, text: str) -> Sequence[AnswerPart]:
        """The parts that are certain after this piece."""
        for character in text:
            self._send(character)
        return self._take()

    def finish(self, *, cut: bool = False) -> Sequence[AnswerPart]:
        """The parts that were held back."""
        if not (cut and self._sink.is_open):
            while self._reader is not None:
                self._send("")
        return self._take()

    def _send(self, character: str) -> None:
        if self._reader is None or self.ended:
            self._reader = None
            return
        try:
            self._reader.send(character)
        except StopIteration:
            self._reader = None

    def _take(self) -> list[AnswerPart]:
        parts = join_parts((*self._parts, *self._sink.take()))
        self._parts = []
        return parts

    def _call_ended(self) -> None:
        self._parts += self._sink.take()
        self.ended = not self._parallel

    def _write(self, text: str, *, reasoning: bool) -> None:
        self._parts.append(AnswerReasoning(text) if reasoning else AnswerText(text))

    def _read(self) -> Reading[None]:
        chars = self._chars
        while (yield from chars.peek()):
            header = yield from self._read_header()
            if header is None:  # no message: text without a header
                yield from self._pass_content(reasoning=False)
                continue
            recipient, channel = _RECIPIENT.search(header), _CHANNEL.search(header)
            name = recipient.group(1) if recipient else ""
            if name in self._sink.tools and (yield from self._read_call(name)):
                continue
            is_reasoning = channel is not None and channel.group(1) == "analysis"
            yield from self._pass_content(reasoning=is_reasoning)

    def _read_header(self) -> Reading[str | None]:
        """The text up to a message's content; None, and nothing is read, if there is no message."""
        header = ""
        while True:
            character = yield from self._chars.read()
            if character == "<" and (yield from self._chars.literal(MESSAGE[1:])):
                return header
            header += character
            if not character or len(header) > _MAX_HEADER:
                self._chars.unread(header)
                return None

    def _pass_content(self, *, reasoning: bool) -> Reading[None]:
        """Pass on the content of a message, up to its end or to the next one's beginning."""
        chars = self._chars
        back = chars.back
        while True:
            character = back.pop() if back else (yield)
            if character == "<":
                chars.unread(character)
                if (yield from self._is_at_end()):
                    return
                yield from chars.read()
            elif not character:
                return
            self._write(character, reasoning=reasoning)

    def _is_at_end(self) -> Reading[bool]:
        """Whether the content ends here: its end, which is read, or the beginning of another message."""
        chars = self._chars
        if (yield from chars.longest(_ENDS)):
            return True
        begin = yield from chars.longest(_BEGINS)
        if not begin:
            return False
        header = yield from self._read_header()
        chars.unread(begin if header is None else begin + header + MESSAGE)
        return header is not None

    def _read_call(self, name: str) -> Reading[bool]:
        """Read the arguments of a call; False, and nothing is read, if they are no object."""
        chars = self._chars
        spaces = yield from chars.spaces()
        if (yield from chars.peek()) != "{":
            chars.unread(spaces)
            return False
        self._sink.begin(name)
        try:
            yield from write_value(chars, self._sink.write)
        except Unreadable:
            pass  # what was written is closed
        self._sink.end()
        yield from chars.spaces()
        yield from chars.longest(_ENDS)
        return True
