"""The forms of Llama 3: JSON with `parameters`, and Python expressions in brackets (also Llama 4's)."""

from engine.text.tool_calls.call_sink import CallSink
from engine.text.tool_calls.characters import Characters, Reading
from engine.text.tool_calls.form import CallForm
from engine.text.tool_calls.json_calls import read_calls
from engine.text.tool_calls.pythonic_calls import read_python_calls, read_python_list
from engine.text.tool_calls.xml_calls import read_function

_MARK = "<|python_tag|>"


def _read_marked(chars: Characters, sink: CallSink) -> Reading[None]:
    """Calls after the token that announces them."""
    yield from chars.spaces()
    if (yield from chars.literal("[", after_spaces=True)):
        yield from _read_list(chars, sink)
    elif (yield from chars.peek()) == "{":
        yield from read_calls(chars, sink)
    else:
        yield from read_python_calls(chars, sink)


def _read_list(chars: Characters, sink: CallSink) -> Reading[None]:
    """Calls in brackets, of which the first was read: objects, or expressions."""
    spaces = yield from chars.spaces()
    if (yield from chars.peek()) == "{":
        chars.unread("[" + spaces)
        yield from read_calls(chars, sink)
    else:
        yield from read_python_list(chars, sink)


LLAMA_JSON = CallForm(
    name="llama-json",
    signs=("dictionary of argument name", _MARK),
    openings={_MARK: _read_marked, "<function=": read_function},
    marks=(_MARK,),
    separator="; ",
    head='{"name": "NAME", "parameters": ',
)

LLAMA_PYTHON = CallForm(
    name="llama-python",
    signs=("func_name1(",),
    openings={_MARK: _read_marked, "[": _read_list},
    marks=(_MARK, "<|python_start|>", "<|python_end|>"),
    opening="[",
    separator=", ",
    closing="]",
    head="NAME(",
    tail=")",
    arguments="python",
)
