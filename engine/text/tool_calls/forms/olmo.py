"""The form of Olmo 3: Python expressions, one on a line, in the tags `<function_calls>`."""

from engine.text.tool_calls.call_sink import CallSink
from engine.text.tool_calls.characters import Characters, Reading
from engine.text.tool_calls.form import CallForm
from engine.text.tool_calls.lenient_calls import read_tagged

_TAG = "<function_calls>"


def _read(chars: Characters, sink: CallSink) -> Reading[None]:
    yield from read_tagged(chars, sink, _TAG)


OLMO = CallForm(
    name="olmo",
    signs=(_TAG,),
    openings={_TAG: _read},
    marks=(_TAG, "</function_calls>"),
    opening=_TAG,
    separator="\n",
    closing="</function_calls>",
    head="NAME(",
    tail=")",
    arguments="python",
)
