"""The form of Qwen3-Coder and Qwen3.5: a tag for the function and one for each parameter."""

from engine.text.tool_calls.call_sink import CallSink
from engine.text.tool_calls.characters import Characters, Reading
from engine.text.tool_calls.form import CallForm
from engine.text.tool_calls.lenient_calls import read_tagged
from engine.text.tool_calls.xml_calls import read_function

_TAG, _FUNCTION = "<tool_call>", "<function="


def _read_tagged(chars: Characters, sink: CallSink) -> Reading[None]:
    yield from read_tagged(chars, sink, _TAG)


def _read_function(chars: Characters, sink: CallSink) -> Reading[None]:
    """Functions without the tag around them, which models leave out after text."""
    yield from read_function(chars, sink)
    yield from chars.literal("</tool_call>", after_spaces=True)


QWEN_XML = CallForm(
    name="qwen-xml",
    signs=("<parameter=",),
    openings={_TAG: _read_tagged, _FUNCTION: _read_function},
    marks=(_TAG, "</tool_call>"),
    opening="<tool_call>\n",
    separator="\n</tool_call>\n<tool_call>\n",
    closing="\n</tool_call>",
    head="<function=NAME>\n",
    tail="</function>",
    arguments="tagged",
    tags=("<parameter=KEY>\n", "\n</parameter>\n"),
)
