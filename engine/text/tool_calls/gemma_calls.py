"""Calls as `call:f{city:<escape>Paris<escape>,days:3}`: the forms of FunctionGemma and Gemma 4.

Texts stand between two equal tokens instead of quotes, and may contain any character.
"""

import json
from functools import partial

from engine.text.tool_calls.call_sink import CallSink
from engine.text.tool_calls.characters import Characters, Reading, Unreadable
from engine.text.tool_calls.form import CallReader
from engine.text.tool_calls.literals import MAX_DEPTH, Write, escaped, write_value
from engine.text.tool_calls.xml_calls import until

_CLOSING = {"{": "}", "[": "]"}


def gemma_reader(quote: str, closing: str) -> CallReader:
    """A reader of calls whose texts stand between `quote`, up to `closing`, which may be missing."""
    return partial(_read_call, quote=quote, closing=closing)


def _read_call(chars: Characters, sink: CallSink, *, quote: str, closing: str) -> Reading[None]:
    yield from chars.spaces()
    if not (yield from chars.literal("call:")):
        raise Unreadable
    name = (yield from until(chars, "{")).strip()
    if name not in sink.tools:
        raise Unreadable
    sink.begin(name)
    yield from _write_members(chars, sink.write, quote, 1, "{")
    sink.end()
    yield from chars.literal(closing, after_spaces=True)


def _write_members(
    chars: Characters, write: Write, quote: str, depth: int, bracket: str
) -> Reading[None]:
    """The members of an object, or the items of an array, whose bracket was read."""
    write(bracket)
    before, missing = "", ""

    def write_member(text: str) -> None:
        nonlocal missing
        missing = ""
        write(text)

    try:
        if depth > MAX_DEPTH:
            raise Unreadable
        while not (yield from chars.literal(_CLOSING[bracket], after_spaces=True)):
            yield from chars.spaces()
            key = ""
            if bracket == "{":
                yield from chars.literal(quote)
                key = (yield from until(chars, ":")).strip().removesuffix(quote).strip('"')
                key = json.dumps(key, ensure_ascii=False) + ": "
            write(before + key)
            before, missing = ", ", "null"
            yield from chars.spaces()
            yield from _write_value(chars, write_member, quote, depth)
            if not (yield from chars.literal(",", after_spaces=True)):
                if not (yield from chars.literal(_CLOSING[bracket], after_spaces=True)):
                    raise Unreadable
                break
    except Unreadable:
        write(missing + _CLOSING[bracket])
        raise
    write(_CLOSING[bracket])


def _write_value(chars: Characters, write: Write, quote: str, depth: int) -> Reading[None]:
    if (yield from chars.literal(quote)):
        yield from _write_text(chars, write, quote)
        return
    character = yield from chars.peek()
    if character in ("{", "["):
        yield from chars.read()
        yield from _write_members(chars, write, quote, depth + 1, character)
    else:
        yield from write_value(chars, write, depth)


def _write_text(chars: Characters, write: Write, quote: str) -> Reading[None]:
    write('"')
    while not (yield from chars.literal(quote)):
        character = yield from chars.read()
        if not character:
            write('"')
            raise Unreadable
        write(escaped(character))
    write('"')
