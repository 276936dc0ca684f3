"""The form of MiniMax M2: a tag for the function and one for each parameter, the names as attributes."""

from engine.text.tool_calls.form import CallForm
from engine.text.tool_calls.invoke_calls import invoke_reader

_TAG, _END = "<minimax:tool_call>", "</minimax:tool_call>"

MINIMAX = CallForm(
    name="minimax",
    signs=(_TAG,),
    openings={_TAG: invoke_reader("", _END)},
    marks=(_TAG, _END),
    opening=_TAG + "\n",
    closing=_END,
    head='<invoke name="NAME">\n',
    tail="</invoke>\n",
    arguments="tagged",
    tags=('<parameter name="KEY">', "</parameter>\n"),
)
