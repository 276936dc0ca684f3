"""The forms of Nemotron (Llama-Nemotron, Nano v2) and Apriel: a JSON array between two tags."""

from engine.text.tool_calls.call_sink import CallSink
from engine.text.tool_calls.characters import Characters, Reading
from engine.text.tool_calls.form import CallForm, CallReader
from engine.text.tool_calls.json_calls import read_calls


def _reader(end: str) -> CallReader:
    def read(chars: Characters, sink: CallSink) -> Reading[None]:
        yield from chars.spaces()
        yield from read_calls(chars, sink)
        yield from chars.literal(end, after_spaces=True)

    return read


def _form(name: str, begin: str, end: str) -> CallForm:
    return CallForm(
        name=name,
        signs=(begin,),
        openings={begin: _reader(end)},
        marks=(begin, end),
        opening=begin + "[",
        separator=", ",
        closing="]" + end,
    )


NEMOTRON = _form("nemotron", "<TOOLCALL>", "</TOOLCALL>")
APRIEL = _form("apriel", "<tool_calls>", "</tool_calls>")
