"""`ContextWindow`: what of the open conversation fits into the model's context, and shortening it."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from engine.api.errors import InvalidRequest
from engine.api.image import Image
from engine.clients.engine_client import EngineClient
from engine.conversations.answering import Answering
from engine.conversations.loaded_conversations import LoadedConversations
from engine.conversations.new_nodes import NewNodes
from engine.conversations.summaries import Summaries
from engine.conversations.tree import NodeKind

KEPT_MESSAGES = 2
"""Number of the user's last messages that stay in a shortened context."""
CONTEXT_REQUEST = (
    "Summarise the conversation above in a few sentences, so that it can be continued from the summary. "
    "Keep names, numbers and decisions."
)
CONTEXT_NOTE = "Earlier messages are no longer part of the context."


class ContextWindow:
    """The context of the open conversation's prompts. Used by the session's thread.

    Args:
        loaded: the conversations in memory.
        client: the engine.
        answering: builds prompts.
        new_nodes: adds nodes.
        summaries: writes summaries.
        check_input: what is stored of a text of the user; see `TextGuard.check_input`.
    """

    def __init__(
        self,
        loaded: LoadedConversations,
        client: EngineClient,
        answering: Answering,
        new_nodes: NewNodes,
        summaries: Summaries,
        *,
        check_input: Callable[[str], str],
    ) -> None:
        self._loaded = loaded
        self._client = client
        self._answering = answering
        self._new_nodes = new_nodes
        self._summaries = summaries
        self._check_input = check_input

    def used(self) -> int:
        """Tokens of the open conversation's last prompt and answer; 0 before the first answer."""
        return self._loaded.current.context_used()

    def shorten(self, *, summarised: bool, keep: int = KEPT_MESSAGES) -> str:
        """Take the messages before the last `keep` of the user out of later prompts; the new node's id.

        They stay in the conversation. With `summarised`, a summary by the model takes their place; `keep`
        is then at least 1, because the model could not read a conversation that fills the context.

        Raises:
            InvalidRequest: there are no earlier messages, or an answer is running.
            ContextFull: the messages to summarise do not fit into the context.
            QueueFull, EngineUnavailable: the engine accepts no requests; nothing was added.
        """
        conversation = self._loaded.current
        nodes = conversation.nodes
        if conversation.answer is not None:
            raise InvalidRequest("An answer is running: stop it first.")
        users = [node for node in nodes if node.kind is NodeKind.USER]
        keep = max(keep, 1) if summarised else keep
        if len(users) <= keep:
            raise InvalidRequest("The conversation has no earlier messages to leave out.")
        if summarised:
            first_kept = users[-keep]
            earlier = nodes[: nodes.index(first_kept)]
            return self._summaries.begin(earlier, CONTEXT_REQUEST, first_kept.id)
        with self._loaded.writing():
            note = self._new_nodes.make(conversation, nodes[-1], NodeKind.NOTE, CONTEXT_NOTE)
            note = replace(note, forked_from=users[-keep].id if keep else note.id)
            self._new_nodes.add(conversation, nodes, [note], "shorten context", end=note)
        return note.id

    def fits(self, text: str, *, keep: int, images: Sequence[Image] = ()) -> bool:
        """Whether a message fits into the context after the last `keep` ones of the user and their answers.

        Cost: one tokenization of the message.

        Raises:
            EngineUnavailable: the model is not loaded.
        """
        nodes = self._loaded.current.nodes
        users = [at for at, node in enumerate(nodes) if node.kind is NodeKind.USER]
        first = users[-keep] if keep else len(nodes)
        system = [node for node in nodes[:first] if node.kind is NodeKind.SYSTEM]
        text = self._check_input(text)
        message = self._new_nodes.make(
            self._loaded.current, None, NodeKind.USER, text, images=tuple(images)
        )
        prompt = self._answering.builder.build([*system, *nodes[first:], message])
        model = self._client.snapshot().model
        return model is not None and len(prompt.token_ids) < model.context_length
