"""Calls that any model may write, whatever its form is: JSON by itself, in a fence, or in tags."""

from engine.text.tool_calls.call_sink import CallSink
from engine.text.tool_calls.characters import Characters, Reading, Unreadable
from engine.text.tool_calls.json_calls import read_calls
from engine.text.tool_calls.pythonic_calls import read_python_calls
from engine.text.tool_calls.xml_calls import read_functions

TAGS = (
    "tool_call", "tool_calls", "function_call", "function_calls", "tool", "tools", "function",
    "functions", "json", "response",
)  # fmt: skip
"""Names of tags in which models write calls."""

_LANGUAGES = frozenset(
    {"", "json", "jsonc", "json5", "xml", "text", "plaintext", "tool_code", *TAGS}
)
"""Languages of fences in which models write calls."""
_MAX_LANGUAGE = 20

FENCES = ("```", "~~~")


def read_bare(chars: Characters, sink: CallSink) -> Reading[None]:
    """Calls as JSON; nothing of it was read."""
    yield from read_calls(chars, sink)
    # The opening tag may be a token that was left out.
    yield from chars.literal("</tool_call>", after_spaces=True)


def read_fence(chars: Characters, sink: CallSink) -> Reading[None]:
    """Calls in a fence; its first three characters follow."""
    fence = yield from chars.longest(FENCES)
    while fence and (yield from chars.literal(fence[0])):
        fence += fence[0]
    language = ""
    while True:
        character = yield from chars.read()
        if not (character.isalnum() or character == "_") or len(language) > _MAX_LANGUAGE:
            chars.unread(character)
            break
        language += character
    if not fence or language.lower() not in _LANGUAGES:
        raise Unreadable
    yield from chars.spaces()
    if language.lower() == "tool_code":  # Gemma's
        yield from read_python_calls(chars, sink)
    elif not (yield from _read_tag(chars, sink)):
        yield from read_calls(chars, sink)
    yield from chars.literal(fence, after_spaces=True)


def read_tag(chars: Characters, sink: CallSink) -> Reading[None]:
    """Calls between tags; the opening tag follows."""
    if not (yield from _read_tag(chars, sink)):
        raise Unreadable


def _read_tag(chars: Characters, sink: CallSink) -> Reading[bool]:
    """As `read_tag`; False, and nothing is read, if no tag follows."""
    tag = yield from chars.longest(f"<{name}>" for name in TAGS)
    if not tag:
        return False
    yield from read_tagged(chars, sink, tag)
    return True


def read_tagged(chars: Characters, sink: CallSink, tag: str) -> Reading[None]:
    """Calls in any notation after an opening tag, and the closing tag, which may be missing."""
    yield from chars.spaces()
    character = yield from chars.peek()
    if character in ("`", "~"):
        yield from read_fence(chars, sink)
    elif (yield from chars.literal("<function=")):
        yield from read_functions(chars, sink)
    elif character in ("{", "["):
        yield from read_calls(chars, sink)
    else:
        yield from read_python_calls(chars, sink)
    yield from chars.literal("</" + tag[1:], after_spaces=True)
