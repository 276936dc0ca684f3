"""Tools that the model may call in a conversation: where they come from, and their use by answers.

The tools run elsewhere (`agents.service.tool_session`); a conversation only knows futures of their results.
"""

from collections.abc import Sequence
from concurrent.futures import CancelledError, Future
from typing import Protocol

import orjson

from engine.api.tools import (
    CallFormName,
    OpenTools,
    Tool,
    ToolCall,
    ToolChoice,
    ToolDecision,
    ToolRound,
)
from engine.grammar.turn_tools import TurnTools
from engine.text.chat_tokenizer import ChatTokenizer
from engine.text.control_tokens import ControlTokens
from engine.text.tool_calls.choosing import chosen_form


class ToolSource(Protocol):
    """Opens the tools of conversations.

    Attributes:
        form: in which the model writes calls; `auto` is that of its template.
        decision: who decides whether an answer calls a tool.
    """

    form: CallFormName
    decision: ToolDecision

    def open(self, tree_id: str, text: str, *, has_results: bool) -> OpenTools | None:
        """Open the tools for a message; None while tools are switched off.

        Args:
            tree_id: the conversation.
            text: what the user has written in it.
            has_results: whether it has results of tools already.
        """
        ...


class ToolUse:
    """The tools of the answers to one message, until an answer has no calls.

    Attributes:
        in_words: whether the next answer may have no calls.
        tools: the tools, once `is_ready`.
    """

    def __init__(
        self, opened: OpenTools, *, form: CallFormName = "auto", decision: ToolDecision = "auto"
    ) -> None:
        self.in_words = False
        self.tools: Sequence[Tool] = ()
        self._form = form
        self._decision = decision
        self._opened = opened
        self._offered = opened.offered()
        self._taken = False

    def is_ready(self, controls: ControlTokens) -> bool:
        """Whether the tools can be offered. Those whose description spells a control token are left out.

        Raises:
            PravahaError: they cannot be used.
        """
        if not self._taken and self._offered.done():
            try:
                offered = self._offered.result()
            except CancelledError:
                offered = ()
            self.tools = [tool for tool in offered if not _spells_control(tool, controls)]
            self._taken = True
        return self._taken

    def turn(self, tokenizer: ChatTokenizer) -> TurnTools | None:
        """The tools of the next answer; None if none can be offered."""
        if not self.tools:
            return None
        form = chosen_form(self._form, tokenizer.tool_template)
        return TurnTools(self.tools, ToolChoice(), form, tokenizer, self._decision)

    def act(self, calls: Sequence[ToolCall]) -> "Future[ToolRound]":
        """See `OpenTools.act`."""
        return self._opened.act(calls)

    def close(self) -> None:
        """See `OpenTools.close`."""
        self._opened.close()


def _spells_control(tool: Tool, controls: ControlTokens) -> bool:
    text = f"{tool.name}\n{tool.description}\n{orjson.dumps(dict(tool.parameters)).decode()}"
    return any(spelling in text for spelling in controls.spellings)
