"""The form of Command R7B and Command A: a JSON array between two tokens, with numbers of the calls."""

from engine.text.tool_calls.form import CallForm
from engine.text.tool_calls.json_calls import json_reader

_BEGIN, _END = "<|START_ACTION|>", "<|END_ACTION|>"

COMMAND = CallForm(
    name="command",
    signs=(_BEGIN,),
    openings={_BEGIN: json_reader(_END)},
    marks=(_BEGIN, _END),
    opening=_BEGIN + "[\n    ",
    separator=",\n    ",
    closing="\n]" + _END,
    head='{"tool_call_id": "0", "tool_name": "NAME", "parameters": ',
)
