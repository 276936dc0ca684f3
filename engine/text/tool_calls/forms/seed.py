"""The form of Seed-OSS: as Qwen3-Coder's, in a tag of its own and without line breaks around values."""

from engine.text.tool_calls.call_sink import CallSink
from engine.text.tool_calls.characters import Characters, Reading, Unreadable
from engine.text.tool_calls.form import CallForm
from engine.text.tool_calls.xml_calls import read_functions

_TAG, _END = "<seed:tool_call>", "</seed:tool_call>"


def _read(chars: Characters, sink: CallSink) -> Reading[None]:
    if not (yield from chars.literal("<function=", after_spaces=True)):
        raise Unreadable
    yield from read_functions(chars, sink, strips=False)
    yield from chars.literal(_END, after_spaces=True)


SEED = CallForm(
    name="seed",
    signs=(_TAG,),
    openings={_TAG: _read},
    marks=(_TAG, _END),
    opening=_TAG + "\n",
    separator=f"\n{_END}\n{_TAG}\n",
    closing="\n" + _END,
    head="<function=NAME>\n",
    tail="</function>",
    arguments="tagged",
    tags=("<parameter=KEY>", "</parameter>\n"),
)
