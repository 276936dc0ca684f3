"""Calls in tags, one for each argument: the forms of Qwen3-Coder and of GLM.

A value has no quotes: it is text up to the closing tag, less one line break at either end, and its type is
that of the schema. The closing tag counts only where another tag of the form, or the end, follows, so a
value may contain one.
"""

import json
from collections.abc import Sequence

from engine.api.tools import Tool
from engine.text.tool_calls.argument_types import STRING, Kinds, json_argument, kinds_of
from engine.text.tool_calls.call_sink import CallSink
from engine.text.tool_calls.characters import Characters, Reading, Unreadable
from engine.text.tool_calls.literals import Write, escaped, write_value

_MAX_NAME = 256


def read_functions(chars: Characters, sink: CallSink, *, strips: bool = True) -> Reading[None]:
    """One call or more, after the first `<function=`; `strips` as in `TaggedArguments`."""
    yield from read_function(chars, sink, strips=strips)
    while (yield from chars.literal("<function=", after_spaces=True)):
        yield from read_function(chars, sink, strips=strips)


def read_function(chars: Characters, sink: CallSink, *, strips: bool = True) -> Reading[None]:
    """`f>…</function>`, after `<function=`: tags of parameters, or JSON; `strips` as in `TaggedArguments`."""
    name = (yield from until(chars, ">")).strip("\"' ")
    if name not in sink.tools:
        raise Unreadable
    yield from chars.spaces()
    if (yield from chars.peek()) == "{":
        yield from read_arguments(chars, sink, name)
    else:
        sink.begin(name)
        yield from _write_parameters(chars, sink, sink.tools[name], strips)
        sink.end()
    yield from chars.literal("</function>", after_spaces=True)


def read_arguments(chars: Characters, sink: CallSink, name: str) -> Reading[None]:
    """The arguments of a call of a tool as JSON; without any if no brace follows."""
    if name not in sink.tools:
        raise Unreadable
    sink.begin(name)
    if (yield from chars.peek()) == "{":
        yield from write_value(chars, sink.write)
    else:
        sink.write("{}")
    sink.end()


def read_keyed_arguments(chars: Characters, sink: CallSink) -> Reading[None]:
    """`f<arg_key>…</arg_key><arg_value>…</arg_value>`, after `<tool_call>`."""
    name = (yield from _line_before_tag(chars)).strip()
    if name not in sink.tools:
        raise Unreadable
    sink.begin(name)
    arguments = TaggedArguments(sink, sink.tools[name])
    while (yield from chars.literal("<arg_key>", after_spaces=True)):
        key = yield from until(chars, "<")
        yield from chars.literal("/arg_key>")
        yield from chars.literal("<arg_value>", after_spaces=True)
        yield from arguments.write(chars, key, ("</arg_value>",), ("<arg_key>", "</tool_call>"))
    arguments.close()
    sink.end()


def _line_before_tag(chars: Characters) -> Reading[str]:
    """A short text up to a line break, which is read, or to a tag, which is not; GLM 4.7 has no break."""
    text = ""
    while len(text) <= _MAX_NAME:
        character = yield from chars.read()
        if character == "<":
            chars.unread(character)
            return text
        if not character or character == "\n":
            return text
        text += character
    raise Unreadable


def until(chars: Characters, ends: str) -> Reading[str]:
    """A short text up to one of some characters, which is read; a line break must be one of them.

    Raises:
        Unreadable: it does not end.
    """
    text = ""
    while True:
        character = yield from chars.read()
        if character and character in ends:
            return text
        if not character or character == "\n" or len(text) > _MAX_NAME:
            chars.unread(text + character)
            raise Unreadable
        text += character


def _write_parameters(chars: Characters, sink: CallSink, tool: Tool, strips: bool) -> Reading[None]:
    arguments = TaggedArguments(sink, tool, strips=strips)
    while (yield from chars.literal("<parameter=", after_spaces=True)):
        try:
            key = yield from until(chars, ">")
        except Unreadable:
            break
        yield from arguments.write(
            chars,
            key.strip("\"' "),
            ("</parameter>", "</function>"),
            ("<parameter=", "</function>", "</tool_call>", "</seed:tool_call>"),
        )
    arguments.close()


class TaggedArguments:
    """Writes the JSON object of a call's arguments, one after another.

    With `strips`, a line break at either end of a value does not belong to it.
    """

    def __init__(self, sink: CallSink, tool: Tool, *, strips: bool = True) -> None:
        self._strips = strips
        self._sink = sink
        self._tool = tool
        self._before = "{"

    def write(
        self,
        chars: Characters,
        key: str,
        closing: Sequence[str],
        following: Sequence[str],
        declared: Kinds | None = None,
    ) -> Reading[None]:
        """Read a value and write it as a member; texts as they arrive, other values at their end.

        Args:
            chars: the answer, after the opening tag.
            key: name of the argument.
            closing: tags that end the value.
            following: tags of which one follows the closing tag, unless the answer ends.
            declared: the types that the tag says; None takes those of the schema.
        """
        kinds = kinds_of(self._tool, key) if declared is None else declared
        self._sink.write(f"{self._before}{json.dumps(key, ensure_ascii=False)}: ")
        self._before = ", "
        if kinds == STRING:
            self._sink.write('"')
            yield from _read_text(
                chars,
                lambda text: self._sink.write(escaped(text)),
                closing,
                following,
                self._strips,
            )
            self._sink.write('"')
        else:
            pieces: list[str] = []
            yield from _read_text(chars, pieces.append, closing, following, self._strips)
            self._sink.write(json_argument("".join(pieces), kinds))

    def close(self) -> None:
        """Write the end of the object."""
        self._sink.write("{}" if self._before == "{" else "}")


def _read_text(
    chars: Characters,
    write: Write,
    closing: Sequence[str],
    following: Sequence[str],
    strips: bool,
) -> Reading[None]:
    """Text up to a closing tag, which is read, or to the end; `strips` as in `TaggedArguments`."""
    if strips:
        yield from chars.literal("\n")
    back = chars.back
    starts = {tag[0] for tag in closing}
    held = ""  # a line break, which the closing tag may follow
    while True:
        character = back.pop() if back else (yield)
        if not character:
            return
        if character in starts:
            chars.unread(character)
            if (yield from _closes(chars, closing, following)):
                return
            yield from chars.read()
        if held:
            write(held)
            held = ""
        if character == "\n" and strips:
            held = character
        else:
            write(character)


def _closes(chars: Characters, closing: Sequence[str], following: Sequence[str]) -> Reading[bool]:
    """Read the closing tag of a value if one follows here."""
    tag = yield from chars.longest(closing)
    if not tag:
        return False
    spaces = yield from chars.spaces()
    next_tag = yield from chars.longest(following)
    is_last = not (yield from chars.peek()) and not next_tag
    chars.unread(spaces + next_tag)
    if next_tag or is_last:
        if tag in following:  # the end of the call, whose last value is not closed
            chars.unread(tag)
        return True
    chars.unread(tag)
    return False
