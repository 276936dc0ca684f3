"""The form of MiniCPM 5: a tag for the function and one for each parameter, whose text may be CDATA."""

from engine.text.tool_calls.call_sink import CallSink
from engine.text.tool_calls.characters import Characters, Reading
from engine.text.tool_calls.form import CallForm
from engine.text.tool_calls.invoke_calls import invoke_reader

_BEGIN = "<function name="
_read_calls = invoke_reader("", "", function="function", parameter="param")


def _read(chars: Characters, sink: CallSink) -> Reading[None]:
    chars.unread(_BEGIN)
    yield from _read_calls(chars, sink)


MINICPM = CallForm(
    name="minicpm",
    signs=('<param name="',),
    openings={_BEGIN: _read},
    head='<function name="NAME">',
    tail="</function>",
    arguments="tagged",
    tags=('<param name="KEY">', "</param>"),
)
