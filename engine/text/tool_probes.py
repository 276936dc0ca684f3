"""Conversations and tools by which a chat template is asked which calls it renders, and how."""

from engine.api.chat import ChatMessage
from engine.api.tools import Tool
from engine.text.tool_messages import template_tools, with_ids

_CALL, _RESULT = "a_tool_name", "a tool's result"

PROBE: list[ChatMessage] = [
    {"role": "user", "content": "x"},
    {
        "role": "assistant",
        "content": "",
        "tool_calls": [
            {"id": "abcdef123", "type": "function", "function": {"name": _CALL, "arguments": {}}}
        ],
    },
    {"role": "tool", "content": _RESULT, "tool_call_id": "abcdef123", "name": _CALL},
]
"""A conversation with a tool call. The id has the nine characters that Mistral's templates demand."""

_SECOND_CALL, _SECOND_RESULT = "another_tool_name", "another tool's result"

PROBE_OF_TWO: list[ChatMessage] = [
    PROBE[0],
    {
        **PROBE[1],
        "tool_calls": [
            *PROBE[1]["tool_calls"],
            {
                "id": "ghijkl456",
                "type": "function",
                "function": {"name": _SECOND_CALL, "arguments": {}},
            },
        ],
    },
    PROBE[2],
    {**PROBE[2], "content": _SECOND_RESULT, "tool_call_id": "ghijkl456", "name": _SECOND_CALL},
]
"""A conversation with two calls in one message."""

LONG_ID_PROBE = with_ids(PROBE, lambda _: "call_abcdef123")
"""`PROBE` with an id as most clients send it."""

PROBE_TOOLS = template_tools([Tool(_CALL, "what the tool does")])


def is_probe_complete(rendering: str) -> bool:
    """Whether a rendering of `PROBE` has the call and the result: some templates leave out calls."""
    # The result may have the call's name too.
    return _CALL in rendering.partition(_RESULT)[0] and _RESULT in rendering


def is_probe_of_two_complete(rendering: str) -> bool:
    """Whether a rendering of `PROBE_OF_TWO` has both calls: some templates write the first only."""
    return _SECOND_CALL in rendering.partition(_RESULT)[0] and _SECOND_RESULT in rendering


def is_offer_complete(rendering: str) -> bool:
    """Whether a rendering with `PROBE_TOOLS` has the tool."""
    return _CALL in rendering
