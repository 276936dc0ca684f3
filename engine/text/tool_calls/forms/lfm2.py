"""The form of LFM2: Python expressions in brackets, between two tokens; JSON if the system asks for it."""

from engine.text.tool_calls.call_sink import CallSink
from engine.text.tool_calls.characters import Characters, Reading
from engine.text.tool_calls.form import CallForm
from engine.text.tool_calls.json_calls import read_calls
from engine.text.tool_calls.pythonic_calls import read_python_calls, read_python_list

_BEGIN, _END = "<|tool_call_start|>", "<|tool_call_end|>"


def _read(chars: Characters, sink: CallSink) -> Reading[None]:
    yield from chars.spaces()
    bracket = yield from chars.literal("[")
    spaces = yield from chars.spaces()
    if (yield from chars.peek()) == "{":
        chars.unread("[" + spaces if bracket else "")
        yield from read_calls(chars, sink)
    elif bracket:
        yield from read_python_list(chars, sink)
    else:
        yield from read_python_calls(chars, sink)
    yield from chars.literal(_END, after_spaces=True)


LFM2 = CallForm(
    name="lfm2",
    signs=(_BEGIN, "<|tool_list_start|>", "List of tools: ["),
    openings={_BEGIN: _read},
    marks=(_BEGIN, _END),
    opening=_BEGIN + "[",
    separator=", ",
    closing="]" + _END,
    head="NAME(",
    tail=")",
    arguments="python",
)
