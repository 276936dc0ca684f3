"""The form of GLM 4.5 and later: tags for the names and the values of arguments."""

from engine.text.tool_calls.call_sink import CallSink
from engine.text.tool_calls.characters import Characters, Reading
from engine.text.tool_calls.form import CallForm
from engine.text.tool_calls.lenient_calls import read_tagged
from engine.text.tool_calls.xml_calls import read_keyed_arguments

_TAG = "<tool_call>"


def _read(chars: Characters, sink: CallSink) -> Reading[None]:
    yield from chars.spaces()
    if (yield from chars.peek()) in ("{", "[", "<", "`", "~"):
        yield from read_tagged(chars, sink, _TAG)
        return
    yield from read_keyed_arguments(chars, sink)
    yield from chars.literal("</tool_call>", after_spaces=True)


GLM = CallForm(
    name="glm",
    signs=("<arg_key>",),
    openings={_TAG: _read},
    marks=(_TAG, "</tool_call>", "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>"),
    opening="<tool_call>",
    separator="\n</tool_call>\n<tool_call>",
    closing="\n</tool_call>",
    head="NAME",
    tail="",
    arguments="tagged",
    tags=("\n<arg_key>KEY</arg_key>\n<arg_value>", "</arg_value>"),
)
