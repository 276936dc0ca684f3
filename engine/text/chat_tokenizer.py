"""`ChatTokenizer`: what the forms of calls and the decision about them need of a model's tokenizer."""

from collections.abc import Iterable, Sequence
from typing import Protocol

from engine.api.chat import ChatMessage
from engine.text.control_tokens import ControlTokens


class ChatTokenizer(Protocol):
    """A tokenizer with its chat template: a `Tokenizer`, or that of an `EngineClient`."""

    @property
    def tool_template(self) -> str:
        """The source of the chat template that is applied where there are tools; empty if there is none."""
        ...

    @property
    def control_tokens(self) -> ControlTokens:
        """The control tokens and their spellings."""
        ...

    def encode(self, text: str, *, special: bool = False) -> list[int]:
        """Token ids of text; control tokens are recognised only with `special`."""
        ...

    def encode_rest(self, text: str) -> list[int]:
        """As `encode`, for text that continues another."""
        ...

    def decode(self, token_ids: Iterable[int], *, skip_special: bool = True) -> str:
        """Text of token ids."""
        ...

    def render_chat(
        self, messages: Sequence[ChatMessage], *, add_generation_prompt: bool = True
    ) -> str:
        """The chat template applied to messages.

        Raises:
            InvalidRequest: the template rejects the messages.
        """
        ...
