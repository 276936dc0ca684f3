"""The form of Kimi K2: the number of the call beside the tool's name, then JSON, between tokens."""

from engine.text.tool_calls.call_sink import CallSink
from engine.text.tool_calls.characters import Characters, Reading
from engine.text.tool_calls.form import CallForm
from engine.text.tool_calls.xml_calls import read_arguments, until

_CALLS, _CALLS_END = "<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"
_CALL, _CALL_END = "<|tool_call_begin|>", "<|tool_call_end|>"
_ARGUMENTS = "<|tool_call_argument_begin|>"
_PREFIX = "functions."


def _read(chars: Characters, sink: CallSink) -> Reading[None]:
    yield from chars.literal(_CALL, after_spaces=True)
    yield from _read_call(chars, sink)
    while (yield from chars.literal(_CALL, after_spaces=True)):
        yield from _read_call(chars, sink)
    yield from chars.literal(_CALLS_END, after_spaces=True)


def _read_call(chars: Characters, sink: CallSink) -> Reading[None]:
    """`functions.NAME:NUMBER`, the token before the arguments, and JSON."""
    written = (yield from until(chars, "<")).strip()
    yield from chars.literal(_ARGUMENTS[1:])
    yield from chars.spaces()
    name = written.removeprefix(_PREFIX)
    if name not in sink.tools:
        name = name.rpartition(":")[0] or name
    yield from read_arguments(chars, sink, name)
    yield from chars.literal(_CALL_END, after_spaces=True)


KIMI = CallForm(
    name="kimi",
    signs=(_CALLS, "<|im_system|>tool_declare"),
    openings={_CALLS: _read, _CALL: _read_call},
    marks=(_CALLS, _CALLS_END, _CALL, _CALL_END, _ARGUMENTS),
    opening=_CALLS + _CALL,
    separator=_CALL_END + _CALL,
    closing=_CALL_END + _CALLS_END,
    head=f"{_PREFIX}NAME:0{_ARGUMENTS}",
    tail="",
)
