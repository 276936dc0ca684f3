"""The forms of Nemotron (Llama-Nemotron, Nano v2) and Apriel: a JSON array between two tags."""

from engine.text.tool_calls.form import CallForm
from engine.text.tool_calls.json_calls import json_reader


def _form(name: str, begin: str, end: str) -> CallForm:
    return CallForm(
        name=name,
        signs=(begin,),
        openings={begin: json_reader(end)},
        marks=(begin, end),
        opening=begin + "[",
        separator=", ",
        closing="]" + end,
    )


NEMOTRON = _form("nemotron", "<TOOLCALL>", "</TOOLCALL>")
APRIEL = _form("apriel", "<tool_calls>", "</tool_calls>")
