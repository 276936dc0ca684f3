"""`ClientTokenizer`: the tokenizer of a client's model, as a `ChatTokenizer`."""

from collections.abc import Iterable, Sequence

from engine.api.chat import ChatMessage
from engine.clients.engine_client import EngineClient
from engine.text.chat_encoding import encode_rest
from engine.text.control_tokens import ControlTokens


class ClientTokenizer:
    """Asks the client, whose model may change."""

    def __init__(self, client: EngineClient) -> None:
        self._client = client

    @property
    def tool_template(self) -> str:
        """See `ChatTokenizer`."""
        return self._client.tool_template()

    @property
    def control_tokens(self) -> ControlTokens:
        """See `ChatTokenizer`."""
        return self._client.control_tokens()

    def encode(self, text: str, *, special: bool = False) -> list[int]:
        """See `ChatTokenizer`."""
        return self._client.tokenize(text, special=special)

    def encode_rest(self, text: str) -> list[int]:
        """See `ChatTokenizer`."""
        return encode_rest(self.encode, text)

    def decode(self, token_ids: Iterable[int], *, skip_special: bool = True) -> str:
        """See `ChatTokenizer`."""
        return self._client.detokenize(list(token_ids), skip_special=skip_special)

    def render_chat(
        self, messages: Sequence[ChatMessage], *, add_generation_prompt: bool = True
    ) -> str:
        """See `ChatTokenizer`."""
        return self._client.render_chat(messages, add_generation_prompt=add_generation_prompt)
