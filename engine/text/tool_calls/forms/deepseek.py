"""The forms of DeepSeek: a name, then JSON, in a fence before V3.1; tags from V3.2 on."""

from engine.text.tool_calls.call_sink import CallSink
from engine.text.tool_calls.characters import Characters, Reading
from engine.text.tool_calls.form import CallForm
from engine.text.tool_calls.invoke_calls import invoke_reader
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

_DSML = "｜DSML｜"


def _tag(name: str) -> tuple[str, str]:
    return f"<{_DSML}{name}>", f"</{_DSML}{name}>"


_TAGS, _TAGS_OF_V4 = _tag("function_calls"), _tag("tool_calls")


def _tagged(name: str, signs: tuple[str, ...], tags: tuple[str, str]) -> CallForm:
    """The form with one of the two tags around calls; either is read."""
    begin, end = tags
    return CallForm(
        name=name,
        signs=signs,
        openings={one: invoke_reader(_DSML, last) for one, last in (_TAGS, _TAGS_OF_V4)},
        marks=(_DSML,),
        opening=begin + "\n",
        closing=end,
        head=f'<{_DSML}invoke name="NAME">\n',
        tail=f"</{_DSML}invoke>\n",
        arguments="tagged",
        tags=(f'<{_DSML}parameter name="KEY" string="IS_TEXT">', f"</{_DSML}parameter>\n"),
    )


# The template of V4 puts the tag together.
DEEPSEEK_V4 = _tagged("deepseek-v4", (_TAGS_OF_V4[0], "+ 'tool_calls>"), _TAGS_OF_V4)
DEEPSEEK_V32 = _tagged("deepseek-v3.2", (_DSML,), _TAGS)
