"""`CodePrompt`: a conversation whose next answer is code in a fence."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from agents.model.session import ModelSession
from engine.api.chat import ChatMessage
from engine.api.errors import InvalidRequest
from engine.text.chat_encoding import ChatEncoder

SYSTEM = "You are a careful programmer. You answer with code alone, in one fence, and without explanation."


@dataclass(frozen=True, slots=True)
class CodePrompt:
    """What the model is asked.

    Attributes:
        messages: the conversation; the last message is the user's.
        opening: how the answer begins: a fence with its language, and what follows that line is the
            beginning of the code, such as a comment with the file's path; empty leaves it to the model.
        goal: a few words for the screen.
    """

    messages: tuple[ChatMessage, ...]
    opening: str = "```python\n"
    goal: str = ""

    @classmethod
    def ask(
        cls, text: str, *, system: str = SYSTEM, opening: str = "```python\n", goal: str = ""
    ) -> "CodePrompt":
        """One question."""
        messages: list[ChatMessage] = [{"role": "system", "content": system}] if system else []
        return cls((*messages, {"role": "user", "content": text}), opening, goal)

    @property
    def prefix(self) -> str:
        """The beginning of the code that the opening has."""
        return self.opening.partition("\n")[2]

    def again(self, failure: str) -> "CodePrompt":
        """The question anew, with what a first answer failed. Its code is left out: small models copy it."""
        *before, last = self.messages
        said = f"{last['content']}\n\nA first attempt was wrong: {failure} Write it another way."
        return replace(self, messages=(*before, {"role": "user", "content": said}))

    def token_ids(self, session: ModelSession) -> tuple[int, ...]:
        """The prompt's ids, the opening of the answer included.

        Raises:
            InvalidRequest: the chat template rejects the conversation.
        """
        client = session.client
        encoder = ChatEncoder(client.tokenize, client.render_chat, client.control_tokens())
        messages: Sequence[ChatMessage] = self.messages
        try:
            ids = encoder.encode_chat(messages)
        except InvalidRequest:  # the first templates of Mistral take no system message
            ids = encoder.encode_chat(_without_system(messages))
        return (*ids, *(client.tokenize(self.opening) if self.opening else ()))


def _without_system(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """The system message's text at the head of the first message of the user."""
    if len(messages) < 2 or messages[0]["role"] != "system":
        return list(messages)
    first = f"{messages[0]['content']}\n\n{messages[1]['content']}"
    return [{"role": "user", "content": first}, *messages[2:]]
