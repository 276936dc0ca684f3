"""The form of Command R7B and Command A: a JSON array between two tokens, with numbers of the calls."""

from engine.text.tool_calls.call_sink import CallSink
from engine.text.tool_calls.characters import Characters, Reading
from engine.text.tool_calls.form import CallForm
from engine.text.tool_calls.json_calls import read_calls

_BEGIN, _END = "<|START_ACTION|>", "<|END_ACTION|>"


def _read(chars: Characters, sink: CallSink) -> Reading[None]:
    yield from chars.spaces()
    yield from read_calls(chars, sink)
    yield from chars.literal(_END, after_spaces=True)


COMMAND = CallForm(
    name="command",
    signs=(_BEGIN,),
    openings={_BEGIN: _read},
    marks=(_BEGIN, _END),
    opening=_BEGIN + "[\n    ",
    separator=",\n    ",
    closing="\n]" + _END,
    head='{"tool_call_id": "0", "tool_name": "NAME", "parameters": ',
)
