"""`CallParser`: divides an answer into text and calls of tools, as it arrives.

Text is passed on at once, except for what may be the beginning of a call, and for spaces before it. A call
is certain when it names one of the request's tools and its arguments begin; from then on its arguments are
passed on as they arrive. What turns out to be no call is text, unchanged. Spaces between text and a call,
and what encloses calls (tags, fences, brackets), are in neither.

Where a call may begin: at an opening of the model's form, anywhere; at a tag or at the beginning of a fence;
and at a brace or bracket after a space. The last two not inside fences of program text, and not inside JSON
that is no call.

Cost: text without an opening is searched once; the characters of a possible call are read one by one.
"""

import re
from collections.abc import Mapping, Sequence

from engine.api.answer_parts import AnswerPart, AnswerText
from engine.api.tools import Tool
from engine.text.tool_calls.call_sink import CallSink
from engine.text.tool_calls.characters import SPACES, Characters, Reading, Unreadable
from engine.text.tool_calls.form import CallForm
from engine.text.tool_calls.joined_parts import join_parts
from engine.text.tool_calls.lenient_calls import FENCES, read_bare, read_fence, read_tag
from engine.text.tool_calls.literals import discard, write_value

_LENIENT_STARTS = "{[<`~"
_LINE_START = 256
"""Characters of a line that are kept, to recognise a fence."""


class CallParser:
    """The parser of one answer.

    Attributes:
        ended: whether the only call that the answer may have is complete.
    """

    def __init__(self, form: CallForm, tools: Mapping[str, Tool], *, parallel: bool = True) -> None:
        """Find calls of `tools` in `form`; without `parallel`, the answer ends after the first."""
        self.ended = False
        self._form = form
        self._parallel = parallel
        self._sink = CallSink(tools, form.new_id)
        self._sink.at_end = self._call_ended
        self._parts: list[AnswerPart] = []
        self._own_starts = {opening[0] for opening in form.openings}
        starts = sorted(self._own_starts.union(_LENIENT_STARTS))
        self._starts = re.compile(f"[{re.escape(''.join(starts))}]")
        # The text before.
        self._spaces = ""  # at its end, not passed on yet
        self._last = ""  # its last character; empty at the beginning and after a call
        self._line = ""  # the beginning of its last line
        self._follows_call = False  # with at most spaces between
        self._is_fenced = False
        self._json: Reading[None] | None = None  # reads on in JSON that is no call
        # The possible call.
        self._chars = Characters()
        self._attempt: Reading[None] | None = None
        self._raw = ""  # what was read since it began, or since the last complete call in it
        self._calls_before = 0

    def feed(self, text: str) -> Sequence[AnswerPart]:
        """The parts that are certain after this piece."""
        self._run(text)
        return self._take()

    def finish(self, *, cut: bool = False) -> Sequence[AnswerPart]:
        """The parts that were held back; a call that breaks off is closed, unless the answer was cut."""
        while self._attempt is not None:
            if not cut:
                self._run(self._advance(""))
            elif self._sink.is_open:
                self._attempt = None
            else:
                self._run(self._failed())
        if self._spaces and not self._follows_call:
            self._parts.append(AnswerText(self._spaces))
        return self._take()

    def _take(self) -> list[AnswerPart]:
        """The parts so far, pieces of text joined."""
        parts = join_parts((*self._parts, *self._sink.take()))
        self._parts = []
        return parts

    def _run(self, text: str) -> None:
        while text and not self.ended:
            text = self._scan(text) if self._attempt is None else self._advance(text)

    # Text.

    def _scan(self, text: str) -> str:
        """Pass text on up to a possible call; the rest."""
        found = self._starts.search(text)
        if found is None:
            self._pass(text)
            return ""
        start = found.start()
        if start:
            self._pass(text[:start])
        if self._may_begin(text[start]):
            self._calls_before, self._raw = self._sink.count, ""
            self._chars = Characters()
            self._attempt = self._read(lenient=not self._is_code)
            next(self._attempt)
            return text[start:]
        self._pass(text[start])
        return text[start + 1 :]

    def _may_begin(self, character: str) -> bool:
        """Whether a call may begin with the character here."""
        if character in self._own_starts:
            return True
        if self._is_code:
            return False
        if character in "{[":
            return not self._last or self._last in SPACES
        if character in "`~":
            return not self._line.strip(SPACES)
        return True

    @property
    def _is_code(self) -> bool:
        """Whether the text is inside a fence, or JSON."""
        return self._is_fenced or self._json is not None or _is_fence(self._line)

    def _pass(self, text: str) -> None:
        """Pass text on, but for the spaces at its end."""
        if self._json is not None:
            self._read_json(text)
        self._last = text[-1]
        first, *lines = text.split("\n")
        if len(self._line) < _LINE_START:
            self._line += first
        for line in lines:
            self._is_fenced ^= _is_fence(self._line)
            self._line = line
        text = self._spaces + text
        kept = text.rstrip(SPACES)
        self._spaces = text[len(kept) :]
        if kept:
            self._follows_call = False
            self._parts.append(AnswerText(kept))

    def _read_json(self, text: str) -> None:
        """Follow JSON that is no call, to its end or to what is no JSON."""
        for character in text:
            try:
                if self._json is not None:
                    self._json.send(character)
            except (StopIteration, Unreadable):
                self._json = None

    # A possible call.

    def _read(self, *, lenient: bool) -> Reading[None]:
        """Read calls in any form."""
        chars, sink = self._chars, self._sink
        opening = yield from chars.longest(self._form.openings)
        if opening:
            yield from self._form.openings[opening](chars, sink)
            return
        character = yield from chars.peek()
        if lenient and character in ("{", "["):
            yield from read_bare(chars, sink)
        elif lenient and character in ("`", "~"):
            yield from read_fence(chars, sink)
        elif lenient:
            yield from read_tag(chars, sink)
        else:
            raise Unreadable

    def _advance(self, text: str) -> str:
        """Give characters to the reader while it reads; the rest. No text is the end of the answer."""
        for position, character in enumerate(text or ("",), start=1):
            self._raw += character
            try:
                if self._attempt is not None:
                    self._attempt.send(character)
            except StopIteration:
                self._attempt = None
                return self._chars.unread_text + text[position:]
            except Unreadable:
                return self._failed() + text[position:]
            if self.ended:
                self._attempt = None
                return ""
            if self._sink.is_open:
                self._raw = ""
        return ""

    def _failed(self) -> str:
        """The text of a possible call that is none, to be read again; its first character is text."""
        self._attempt = None
        if self._sink.is_open:
            self._sink.end()
        if self._sink.count > self._calls_before:
            return self._raw
        first, rest = self._raw[0], self._raw[1:]
        if first in "{[" and self._json is None:
            self._json = write_value(Characters(), discard)
            next(self._json)
        self._pass(first)
        return rest

    def _call_ended(self) -> None:
        """A call is complete; text may follow."""
        self._raw = self._chars.unread_text
        self._spaces = self._last = self._line = ""
        self._follows_call = True
        self._parts += self._sink.take()
        self.ended = not self._parallel


def _is_fence(line: str) -> bool:
    """Whether a line begins or ends a fence: it begins with one, and has not its end as well."""
    line = line.lstrip(SPACES)
    return line.startswith(FENCES) and line.count(line[:3]) % 2 == 1
