"""The forms of Mistral: a JSON array after a token (v3), or a name and its arguments (v7 and later)."""

from engine.text.tool_calls.call_ids import new_short_id
from engine.text.tool_calls.call_sink import CallSink
from engine.text.tool_calls.characters import Characters, Reading, Unreadable
from engine.text.tool_calls.form import CallForm
from engine.text.tool_calls.json_calls import read_calls
from engine.text.tool_calls.xml_calls import read_arguments

_MARK, _ID, _ARGUMENTS = "[TOOL_CALLS]", "[CALL_ID]", "[ARGS]"
_MAX_NAME = 256


def _read(chars: Characters, sink: CallSink) -> Reading[None]:
    """What follows the token, in either form: templates of one version are used with models of another."""
    yield from chars.spaces()
    if (yield from chars.peek()) in ("{", "["):
        yield from read_calls(chars, sink)
        return
    name = (yield from _until_mark(chars)).strip()
    if (yield from chars.literal(_ID)):
        yield from _until_mark(chars)  # an id of the model; the call gets one of its own
    yield from chars.literal(_ARGUMENTS)
    yield from chars.spaces()
    yield from read_arguments(chars, sink, name)


def _until_mark(chars: Characters) -> Reading[str]:
    """The text up to a mark or to a brace."""
    text = ""
    while True:
        character = yield from chars.read()
        if not character or character in "[{\n" or len(text) > _MAX_NAME:
            chars.unread(character)
            if not text or character == "\n":
                raise Unreadable
            return text
        text += character


MISTRAL = CallForm(
    name="mistral",
    signs=(_MARK,),
    openings={_MARK: _read},
    marks=(_MARK,),
    opening=_MARK + " [",
    separator=", ",
    closing="]",
    new_id=new_short_id,
)

MISTRAL_ARGS = CallForm(
    name="mistral-args",
    signs=(_ARGUMENTS,),
    openings={_MARK: _read},
    marks=(_MARK, _ID, _ARGUMENTS),
    opening=_MARK,
    separator=_MARK,
    head="NAME" + _ARGUMENTS,
    tail="",
    new_id=new_short_id,
)
