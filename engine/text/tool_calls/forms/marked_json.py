"""The forms of Phi-4 and Granite 3: JSON after a token."""

from engine.text.tool_calls.call_sink import CallSink
from engine.text.tool_calls.characters import Characters, Reading
from engine.text.tool_calls.form import CallForm
from engine.text.tool_calls.json_calls import json_reader, read_calls

_BEGIN, _END = "<|tool_call|>", "<|/tool_call|>"
_FUNCTIONS = "functools["
_read = json_reader(_END)


def _read_listed(chars: Characters, sink: CallSink) -> Reading[None]:
    """Calls after `functools[`, as Phi-4-mini writes them too."""
    chars.unread("[")
    yield from read_calls(chars, sink)


PHI4 = CallForm(
    name="phi4",
    signs=("<|/tool|>",),
    openings={_BEGIN: _read, _FUNCTIONS: _read_listed},
    marks=(_BEGIN, _END),
    opening=_BEGIN + "[",
    separator=", ",
    closing="]" + _END,
)


GRANITE = CallForm(
    name="granite",
    signs=(_BEGIN, "<|start_of_role|>"),
    openings={_BEGIN: _read},
    marks=(_BEGIN,),
    opening=_BEGIN + "[",
    separator=", ",
    closing="]",
)
