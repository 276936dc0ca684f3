"""`ChatForm`: how a conversation becomes a prompt, beside its messages.

A last message of the assistant is the beginning of the answer, as with llama.cpp and Ollama: clients
prefill answers, and have cut ones continued, in this way. OpenAI's and vLLM's servers close it and begin a
new turn, which `add_generation_prompt: true` or `continue_final_message: false` asks for.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from app.server.wire.errors import bad_request
from app.server.wire.schemas import ChatFormFields, Message, Reasoning


class LastTurn(Enum):
    """The end of a rendered conversation."""

    ANSWER = "the assistant's turn is begun"
    OPEN = "the last message is continued"
    CLOSED = "nothing follows the last message"


@dataclass(frozen=True, slots=True)
class ChatForm:
    """How a conversation becomes a prompt.

    Attributes:
        add_generation_prompt: vLLM's field.
        continue_final_message: vLLM's field.
        variables: for the chat template, by name.
    """

    add_generation_prompt: bool | None = None
    continue_final_message: bool | None = None
    variables: Mapping[str, Any] = field(default_factory=dict)

    def applied_to(self, messages: Sequence[Message]) -> tuple[Sequence[Message], LastTurn]:
        """The messages that are rendered, and how they end.

        A last message that begins the answer with nothing is left out.

        Raises:
            ApiError: 400 for two fields that contradict each other.
        """
        turn, last = self._last_turn(messages[-1]), messages[-1]
        is_empty = last.role == "assistant" and not (last.text or last.thoughts or last.tool_calls)
        if turn is LastTurn.OPEN and is_empty and len(messages) > 1:
            return messages[:-1], LastTurn.ANSWER
        return messages, turn

    def _last_turn(self, last: Message) -> LastTurn:
        if self.continue_final_message and self.add_generation_prompt:
            raise bad_request(
                "`continue_final_message` and `add_generation_prompt` exclude each other.",
                param="continue_final_message",
            )
        continues = self.continue_final_message
        if continues is None:
            continues = last.prefix
        if continues is None:
            is_answer = last.role == "assistant" and not last.tool_calls
            continues = is_answer and self.add_generation_prompt is not True
        if continues:
            return LastTurn.OPEN
        return LastTurn.CLOSED if self.add_generation_prompt is False else LastTurn.ANSWER


def chat_form(body: ChatFormFields) -> ChatForm:
    """The form that a body asks for.

    `enable_thinking` and `reasoning_effort` are variables of many templates, `thinking_budget` is one of
    Seed-OSS's; those in `chat_template_kwargs` win.
    """
    return ChatForm(
        body.add_generation_prompt,
        body.continue_final_message,
        {**_thinking(body), **(body.chat_template_kwargs or {})},
    )


def _thinking(body: ChatFormFields) -> dict[str, Any]:
    """The variables for how much to think; an effort of `none` asks not to."""
    reasoning = body.reasoning or Reasoning()
    effort = body.reasoning_effort or reasoning.effort
    thinks = body.enable_thinking if body.enable_thinking is not None else reasoning.enabled
    if thinks is None and effort == "none":
        thinks = False
    variables = {
        "reasoning_effort": effort,
        "enable_thinking": thinks,
        "thinking_budget": body.reasoning_limit,
    }
    return {name: value for name, value in variables.items() if value is not None}
