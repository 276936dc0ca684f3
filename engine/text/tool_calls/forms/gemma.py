"""The forms of FunctionGemma and Gemma 4: a name and members in braces, between two tokens."""

from engine.text.tool_calls.form import CallForm
from engine.text.tool_calls.gemma_calls import gemma_reader

_BEGIN, _END, _QUOTE = "<start_function_call>", "<end_function_call>", "<escape>"
_BEGIN_4, _END_4, _QUOTE_4 = "<|tool_call>", "<tool_call|>", '<|"|>'

FUNCTION_GEMMA = CallForm(
    name="function-gemma",
    signs=(_BEGIN,),
    openings={_BEGIN: gemma_reader(_QUOTE, _END)},
    marks=(_BEGIN, _END, _QUOTE),
    opening=_BEGIN,
    separator=_END + _BEGIN,
    closing=_END,
    head="call:NAME",
    tail="",
    arguments="quoted",
    quote=_QUOTE,
)

GEMMA4 = CallForm(
    name="gemma4",
    signs=(_BEGIN_4,),
    openings={_BEGIN_4: gemma_reader(_QUOTE_4, _END_4)},
    marks=(_BEGIN_4, _END_4, _QUOTE_4),
    opening=_BEGIN_4,
    separator=_END_4 + _BEGIN_4,
    closing=_END_4,
    head="call:NAME",
    tail="",
    arguments="quoted",
    quote=_QUOTE_4,
)
