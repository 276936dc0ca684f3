"""The form of gpt-oss: messages to functions, in a channel of their own. `HarmonyParser` reads them."""

from engine.text.tool_calls.form import CallForm
from engine.text.tool_calls.harmony_parser import MARKS, MESSAGE

HARMONY = CallForm(
    name="harmony",
    signs=("<|channel|>",),
    openings={},
    marks=MARKS,
    opening="<|channel|>commentary to=functions.",
    head=f"NAME <|constrain|>json{MESSAGE}",
    tail="",
    is_single=True,
)
