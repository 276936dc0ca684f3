"""The form of Hermes and of Qwen 2.5 to 3: JSON in the tags `<tool_call>`."""

from engine.text.tool_calls.call_sink import CallSink
from engine.text.tool_calls.characters import Characters, Reading
from engine.text.tool_calls.form import CallForm
from engine.text.tool_calls.lenient_calls import read_tagged

_TAG = "<tool_call>"


def _read(chars: Characters, sink: CallSink) -> Reading[None]:
    yield from read_tagged(chars, sink, _TAG)


HERMES = CallForm(
    name="hermes",
    signs=(_TAG,),
    openings={_TAG: _read},
    marks=(_TAG, "</tool_call>"),
    opening="<tool_call>\n",
    separator="\n</tool_call>\n<tool_call>\n",
    closing="\n</tool_call>",
)
