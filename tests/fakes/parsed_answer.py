"""An answer divided by a parser, in a form that tests can write down."""

import json

from engine.api.answer_parts import AnswerReasoning, AnswerText, CallArguments, CallBegun
from engine.api.tools import Tool

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOLS = {
    one.name: one
    for one in (
        Tool("get_weather", "The weather of a city.", CITY),
        Tool("get_time", "The time."),
        Tool(
            "search-files",
            "Searches.",
            {
                "type": "object",
                "properties": {
                    "query": {"type": "string"},
                    "limit": {"type": "integer"},
                    "deep": {"type": "boolean"},
                    "paths": {"type": "array", "items": {"type": "string"}},
                    "options": {"type": "object"},
                    "note": {"type": ["string", "null"]},
                },
            },
        ),
    )
}


def pieces_of(text, size):
    return [text[at : at + size] for at in range(0, len(text), size)]


def parts_of(parser, pieces, *, cut=False):
    parts = []
    for piece in pieces:
        parts += parser.feed(piece)
    return parts + list(parser.finish(cut=cut))


def read_parts(parts):
    """Texts, `("reasoning", text)`, and `(name, arguments)` of calls, in order; arguments as JSON text."""
    found = []
    for part in parts:
        match part:
            case AnswerText(text) if found and isinstance(found[-1], str):
                found[-1] += text
            case AnswerText(text):
                found.append(text)
            case AnswerReasoning(text) if found and found[-1][0] == "reasoning":
                found[-1] = ("reasoning", found[-1][1] + text)
            case AnswerReasoning(text):
                found.append(("reasoning", text))
            case CallBegun(index, _, name):
                assert index == sum(isinstance(one, list) for one in found)
                found.append([name, ""])
            case CallArguments(index, text):
                calls = [one for one in found if isinstance(one, list)]
                assert text
                assert index == len(calls) - 1  # the last call
                calls[-1][1] += text
    return [tuple(one) if isinstance(one, list) else one for one in found]


def values_of(found):
    """`read_parts` with the arguments as values."""
    return [
        one if isinstance(one, str) or one[0] == "reasoning" else (one[0], json.loads(one[1]))
        for one in found
    ]
