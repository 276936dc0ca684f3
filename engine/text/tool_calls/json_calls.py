"""Calls as JSON objects, `{"name": …, "arguments": {…}}`, in the variants that models write.

The members may have other names and any order, the arguments may be an object or its JSON text, the object
may stand in another one (`{"function": {…}}`, `{"tool_calls": […]}`) or in an array, and its braces may be
doubled, as some templates show them by mistake. An object is a call only if its name is one of the request's
tools and it has no members that calls do not have.
"""

import json

from engine.text.tool_calls.call_sink import CallSink
from engine.text.tool_calls.characters import SPACES, Characters, Reading, Unreadable
from engine.text.tool_calls.form import CallReader
from engine.text.tool_calls.literals import discard, read_string, write_string, write_value

_NAMES = frozenset({"name", "function", "tool", "tool_name", "function_name"})
_ARGUMENTS = frozenset({"arguments", "parameters", "args"})
_NESTED = frozenset({"tool_calls", "tool_call", "function_call", "function_calls"})
_OTHERS = frozenset({"id", "type", "index", "call_id", "tool_call_id"})
_DECLARATION = frozenset({"type", "properties", "$schema"})
"""First members of a JSON schema: an object with it under `parameters` declares a tool."""
_MAX_KEY = 64
_MAX_NAME = 256


def json_reader(closing: str) -> CallReader:
    """A reader of calls up to `closing`, which may be missing."""

    def read(chars: Characters, sink: CallSink) -> Reading[None]:
        yield from chars.spaces()
        yield from read_calls(chars, sink)
        yield from chars.literal(closing, after_spaces=True)

    return read


def read_calls(chars: Characters, sink: CallSink) -> Reading[None]:
    """One call or more: objects or arrays of them, with spaces, commas or semicolons between them.

    Raises:
        Unreadable: something else follows; calls before it have been given to the sink.
    """
    yield from _read_item(chars, sink)
    while True:
        spaces = yield from chars.spaces()
        between = yield from chars.read()
        if between and between in ",;":
            between += yield from chars.spaces()
        else:
            chars.unread(between)
            between = ""
        if (yield from chars.peek()) not in ("{", "["):
            chars.unread(spaces + between)
            return
        yield from _read_item(chars, sink)


def _read_item(chars: Characters, sink: CallSink) -> Reading[None]:
    if (yield from chars.literal("{")):
        yield from _read_object(chars, sink)
    elif (yield from chars.literal("[")):
        yield from _read_array(chars, sink)
    else:
        raise Unreadable


def _read_array(chars: Characters, sink: CallSink) -> Reading[None]:
    """Calls in an array whose bracket was read."""
    while True:
        if not (yield from chars.literal("{", after_spaces=True)):
            raise Unreadable
        yield from _read_object(chars, sink)
        if (yield from chars.literal("]", after_spaces=True)):
            return
        if not (yield from chars.literal(",", after_spaces=True)):
            return  # the bracket is missing, or what follows is none of it


def _read_object(chars: Characters, sink: CallSink, *, inside: bool = False) -> Reading[None]:
    """An object whose brace was read; `inside` another one, whose braces follow."""
    yield from chars.literal("{", after_spaces=True)  # doubled
    before = sink.count
    call = _JsonCall(sink)
    yield from _read_members(chars, sink, call)
    call.finish()
    if not inside:
        yield from chars.literal("}")  # doubled, or one too many
    if sink.count == before:
        raise Unreadable


def _read_members(chars: Characters, sink: CallSink, call: "_JsonCall") -> Reading[None]:
    """The members of an object, and its closing brace, which may be missing after a call."""
    while True:
        yield from chars.spaces()
        character = yield from chars.read()
        if character == "}":
            if call.extra_braces:
                call.extra_braces -= 1
                continue
            return
        if character == ",":
            continue
        if not character or character not in "\"'":
            chars.unread(character)
            if call.has_arguments:
                return
            raise Unreadable
        key = yield from read_string(chars, character, limit=_MAX_KEY)
        if not (yield from chars.literal(":", after_spaces=True)):
            raise Unreadable
        yield from chars.spaces()
        yield from _read_member(chars, sink, call, key)


def _read_member(chars: Characters, sink: CallSink, call: "_JsonCall", key: str) -> Reading[None]:
    character = yield from chars.peek()
    if key in _NAMES and character and character in "\"'":
        yield from chars.read()
        call.set_name((yield from read_string(chars, character, limit=_MAX_NAME)))
    elif key in _ARGUMENTS:
        yield from _read_arguments(chars, call)
    elif (key in _NESTED or key in _NAMES) and character == "{":
        yield from chars.read()
        yield from _read_object(chars, sink, inside=True)
        call.hold_calls()
    elif key in _NESTED and character == "[":
        yield from chars.read()
        yield from _read_array(chars, sink)
        call.hold_calls()
    elif key in _OTHERS or call.has_begun:
        yield from write_value(chars, discard)
    else:
        raise Unreadable


def _read_arguments(chars: Characters, call: "_JsonCall") -> Reading[None]:
    if call.has_arguments:
        yield from write_value(chars, discard)
        return
    character = yield from chars.peek()
    if character == "{":
        yield from chars.read()
        if (yield from chars.literal("{", after_spaces=True)):
            call.extra_braces += 1
        yield from _check_arguments(chars, call)
        chars.unread("{")
        call.begin_arguments()
        yield from write_value(chars, call.write)
    elif character and character in "\"'":
        yield from chars.read()
        yield from _read_argument_text(chars, call, character)
    else:
        pieces: list[str] = []
        yield from write_value(chars, pieces.append)
        if "".join(pieces) not in ("null", "[]"):
            raise Unreadable
        call.begin_arguments()
        call.write("{}")


def _check_arguments(chars: Characters, call: "_JsonCall") -> Reading[None]:
    """Refuse a declaration of a tool; reads nothing."""
    spaces = yield from chars.spaces()
    quote = yield from chars.read()
    if quote != '"':
        chars.unread(spaces + quote)
        return
    found = yield from chars.longest(f'{key}"' for key in _DECLARATION)
    chars.unread(spaces + quote + found)
    if found and not call.may_have(found[:-1]):
        raise Unreadable


def _read_argument_text(chars: Characters, call: "_JsonCall", quote: str) -> Reading[None]:
    """Arguments as JSON text in a string whose quote was read."""
    text = _ArgumentText(call)
    try:
        yield from write_string(chars, text.write, quote)
    except Unreadable:
        text.close()
        raise
    text.finish()


class _JsonCall:
    """What is known of a call while its members arrive in any order.

    Attributes:
        has_arguments: whether they have begun.
        has_begun: whether the sink has the call.
        holds_calls: whether there are calls in it, so that it is none itself.
        extra_braces: closing braces of the arguments beyond those that belong there.
    """

    def __init__(self, sink: CallSink) -> None:
        self.has_arguments = self.has_begun = self.holds_calls = False
        self.extra_braces = 0
        self._sink = sink
        self._name: str | None = None
        self._held: list[str] = []

    def set_name(self, name: str) -> None:
        """The name of the tool; a second one is left out.

        Raises:
            Unreadable: there is no such tool.
        """
        if self._name is not None or self.holds_calls:
            return
        if name not in self._sink.tools:
            raise Unreadable
        self._name = name
        if self.has_arguments:
            self._begin(name)

    def hold_calls(self) -> None:
        """There are calls in the object."""
        self.has_arguments = self.holds_calls = True

    def begin_arguments(self) -> None:
        """The arguments begin."""
        self.has_arguments = True
        if self._name is not None:
            self._begin(self._name)

    def write(self, text: str) -> None:
        """A piece of the arguments."""
        if self.has_begun:
            self._sink.write(text)
        else:
            self._held.append(text)

    def finish(self) -> None:
        """The object is complete; one without arguments is a call without any."""
        if self._name is not None and not self.has_begun and not self.holds_calls:
            self.begin_arguments()
            self.write("{}")
        if self.has_begun:
            self._sink.end()

    def may_have(self, argument: str) -> bool:
        """Whether the tool, or any while it is not known, declares an argument of this name."""
        tools = self._sink.tools
        named = tools.values() if self._name is None else [tools[self._name]]
        return any(argument in one.properties for one in named)

    def _begin(self, name: str) -> None:
        self.has_begun = True
        self._sink.begin(name)
        self._sink.write("".join(self._held))
        self._held.clear()


class _ArgumentText:
    """Reads arguments out of the pieces of a JSON string."""

    def __init__(self, call: _JsonCall) -> None:
        self._call = call
        self._reader = write_value(Characters(), call.write)
        self._has_begun = self._is_done = False

    def write(self, piece: str) -> None:
        """Take a piece, in which a quote is one of the string's two.

        Raises:
            Unreadable: the text is no object.
        """
        if piece == '"' or self._is_done:
            return
        for character in json.loads(f'"{piece}"'):
            if not self._call.has_arguments:
                if character in SPACES:
                    continue
                if character != "{":
                    raise Unreadable
                self._call.begin_arguments()
                self._has_begun = True
                next(self._reader)
            self._send(character)

    def finish(self) -> None:
        """The string is complete."""
        if not self._call.has_arguments:
            self._call.begin_arguments()
            self._call.write("{}")
        self.close()

    def close(self) -> None:
        """Close the arguments, if they have begun and are not complete."""
        while self._has_begun and not self._is_done:
            self._send("")

    def _send(self, character: str) -> None:
        """Give a character to the reader, which closes what breaks off."""
        try:
            self._reader.send(character)
        except (StopIteration, Unreadable):
            self._is_done = True
