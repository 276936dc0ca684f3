"""The form of DeepSeek V3 and R1: a name, then JSON, in a fence before V3.1."""

from engine.text.tool_calls.call_sink import CallSink
from engine.text.tool_calls.characters import Characters, Reading
from engine.text.tool_calls.form import CallForm
from engine.text.tool_calls.xml_calls import read_arguments, until

_CALLS, _CALLS_END = "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"
_CALL, _CALL_END = "<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>"
_BETWEEN = "<｜tool▁sep｜>"


def _read(chars: Characters, sink: CallSink) -> Reading[None]:
    yield from chars.literal(_CALL, after_spaces=True)
    yield from _read_call(chars, sink)
    while (yield from chars.literal(_CALL, after_spaces=True)):
        yield from _read_call(chars, sink)
    yield from chars.literal(_CALLS_END, after_spaces=True)


def _read_call(chars: Characters, sink: CallSink) -> Reading[None]:
    """`function<sep>NAME` and a fence, or `NAME<sep>` and JSON."""
    name = yield from until(chars, "<")
    yield from chars.literal(_BETWEEN[1:])
    yield from chars.spaces()
    if name.strip() == "function" and (yield from chars.peek()) != "{":
        name = yield from until(chars, "\n")
        yield from chars.spaces()
    fenced = (yield from chars.literal("```json")) or (yield from chars.literal("```"))
    yield from chars.spaces()
    yield from read_arguments(chars, sink, name.strip())
    if fenced:
        yield from chars.literal("```", after_spaces=True)
    yield from chars.literal(_CALL_END, after_spaces=True)


DEEPSEEK = CallForm(
    name="deepseek",
    signs=(_CALLS,),
    openings={_CALLS: _read, _CALL: _read_call},
    marks=(_CALLS, _CALLS_END, _CALL, _CALL_END, _BETWEEN),
    opening=_CALLS + _CALL,
    separator=_CALL_END + _CALL,
    closing=_CALL_END + _CALLS_END,
    head="NAME" + _BETWEEN,
    tail="",
)
