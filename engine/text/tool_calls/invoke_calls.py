"""Calls as `<invoke name="f"><parameter name="x">1</parameter></invoke>`: of MiniMax, DeepSeek V3.2, MiniCPM.

A value has no quotes and stands between its tags as it is. DeepSeek's tags begin with a token of their own
and say whether a value is a text (`string="true"`) or JSON; without that its type is that of the schema.
MiniCPM encloses texts with special characters in `<![CDATA[…]]>`.
"""

import re
from dataclasses import dataclass
from functools import partial

from engine.text.tool_calls.argument_types import ALL_KINDS, STRING
from engine.text.tool_calls.call_sink import CallSink
from engine.text.tool_calls.characters import Characters, Reading, Unreadable
from engine.text.tool_calls.form import CallReader
from engine.text.tool_calls.xml_calls import TaggedArguments, until

_ATTRIBUTE = re.compile(r"""(\w+)\s*=\s*["']?([^"'>]*)["']?""")


@dataclass(frozen=True, slots=True)
class _Tags:
    """The tags of a form: what each begins with, and what ends all calls, which may be missing."""

    function: str
    parameter: str
    closing: str


def invoke_reader(
    mark: str, closing: str, *, function: str = "invoke", parameter: str = "parameter"
) -> CallReader:
    """A reader of calls whose tags begin with `mark`, up to `closing`, which may be missing."""
    return partial(_read_calls, tags=_Tags(mark + function, mark + parameter, closing))


def _read_calls(chars: Characters, sink: CallSink, *, tags: _Tags) -> Reading[None]:
    opening = f"<{tags.function}"
    if not (yield from chars.literal(opening, after_spaces=True)):
        raise Unreadable
    yield from _read_call(chars, sink, tags)
    while (yield from chars.literal(opening, after_spaces=True)):
        yield from _read_call(chars, sink, tags)
    yield from chars.literal(tags.closing, after_spaces=bool(tags.closing))


def _read_call(chars: Characters, sink: CallSink, tags: _Tags) -> Reading[None]:
    """One call, after `<invoke`."""
    name = _attributes((yield from until(chars, ">"))).get("name", "")
    if name not in sink.tools:
        raise Unreadable
    sink.begin(name)
    arguments = TaggedArguments(sink, sink.tools[name], strips=False)
    parameter, end = f"<{tags.parameter}", f"</{tags.function}>"
    following = [tag for tag in (parameter, end, tags.closing) if tag]
    while (yield from chars.literal(parameter, after_spaces=True)):
        try:
            given = _attributes((yield from until(chars, ">")))
        except Unreadable:
            break
        declared = {"true": STRING, "false": ALL_KINDS - STRING}.get(given.get("string", ""))
        closing = f"</{tags.parameter}>"
        if (yield from chars.literal("<![CDATA[")):
            closing = "]]>" + closing
        yield from arguments.write(
            chars, given.get("name", ""), (closing, end), following, declared
        )
    arguments.close()
    sink.end()
    yield from chars.literal(end, after_spaces=True)


def _attributes(text: str) -> dict[str, str]:
    """The attributes in a tag."""
    return dict(_ATTRIBUTE.findall(text))
