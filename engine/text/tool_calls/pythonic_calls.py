"""Calls as Python expressions, `f(city="Paris", days=3)`: the forms of Llama 4, LFM2, Gemma and Olmo."""

import json

from engine.text.tool_calls.call_sink import CallSink
from engine.text.tool_calls.characters import Characters, Reading, Unreadable
from engine.text.tool_calls.literals import write_value

_MAX_NAME = 256
_NAME_SIGNS = "_.:-/"


def read_python_list(chars: Characters, sink: CallSink) -> Reading[None]:
    """Calls in brackets, of which the first was read."""
    yield from read_python_calls(chars, sink)
    yield from chars.literal("]", after_spaces=True)


def read_python_calls(chars: Characters, sink: CallSink) -> Reading[None]:
    """One call or more, with commas, semicolons or line breaks between them."""
    yield from chars.spaces()
    yield from read_python_call(chars, sink)
    while True:
        spaces = yield from chars.spaces()
        between = yield from chars.read()
        if not between or between not in ",;":
            chars.unread(between)
            between = ""
        between += yield from chars.spaces()
        name = yield from _identifier(chars)
        bracket = yield from chars.literal("(")
        chars.unread(name + "(" if bracket else name)
        if not bracket or name not in sink.tools:
            chars.unread(spaces + between)
            return
        yield from read_python_call(chars, sink)


def read_python_call(chars: Characters, sink: CallSink) -> Reading[None]:
    """One call; `print` around it, and `.call` after the name, are left out."""
    name = yield from _identifier(chars)
    if name not in sink.tools and name.endswith(".call"):
        name = name.removesuffix(".call")
    if not (yield from chars.literal("(", after_spaces=True)):
        raise Unreadable
    if name == "print" and name not in sink.tools:
        yield from read_python_call(chars, sink)
        yield from chars.literal(")", after_spaces=True)
        return
    if name not in sink.tools:
        raise Unreadable
    sink.begin(name)
    yield from _write_arguments(chars, sink, list(sink.tools[name].properties))
    sink.end()


def _write_arguments(chars: Characters, sink: CallSink, names: list[str]) -> Reading[None]:
    """The arguments up to the closing bracket; those without a name have those of the schema, in order."""
    sink.write("{")
    before, missing = "", ""

    def write(text: str) -> None:
        nonlocal missing
        missing = ""
        sink.write(text)

    try:
        while not (yield from chars.literal(")", after_spaces=True)):
            yield from chars.spaces()
            name = yield from _identifier(chars)
            if not (name and (yield from chars.literal("=", after_spaces=True))):
                chars.unread(name)
                name = names[0] if names else ""
            if not name:
                raise Unreadable
            if name in names:
                names.remove(name)
            sink.write(f"{before}{json.dumps(name, ensure_ascii=False)}: ")
            before, missing = ", ", "null"
            yield from chars.spaces()
            yield from write_value(chars, write)
            if not (yield from chars.literal(",", after_spaces=True)):
                if not (yield from chars.literal(")", after_spaces=True)):
                    raise Unreadable
                break
    except Unreadable:
        sink.write(missing + "}")
        raise
    sink.write("}")


def _identifier(chars: Characters) -> Reading[str]:
    name = ""
    while len(name) < _MAX_NAME:
        character = yield from chars.read()
        if not character or not (character.isalnum() or character in _NAME_SIGNS):
            chars.unread(character)
            break
        name += character
    return name
