"""`ContextWindow`: what of the open conversation fits into the model's context, and shortening it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from engine.api.errors import InvalidRequest
from engine.api.image import Image
from engine.clients.engine_client import EngineClient
from engine.conversations.answering import Answering
from engine.conversations.loaded_conversations import LoadedConversations
from engine.conversations.new_nodes import NewNodes
from engine.conversations.prompt_builder import in_context
from engine.conversations.summaries import Summaries
from engine.conversations.tree import Node, NodeKind

KEPT_MESSAGES = 2
"""Number of the user's last messages that stay in a shortened context."""
CONTEXT_REQUEST = (
    "Summarise the conversation above in a few sentences, so that it can be continued from the summary. "
    "Keep names, numbers and decisions."
)
CONTEXT_NOTE = "Earlier messages are no longer part of the context."


@dataclass(frozen=True, slots=True)
class Outlook:
    """What the model knows after the context was shortened.

    Attributes:
        stays: the user's messages that stay, oldest first, with their answers.
        leaves: number of the user's messages that leave the context.
        unread: how many of them are too much to be read for a summary.
    """

    stays: tuple[str, ...]
    leaves: int
    unread: int = 0


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
        keep = max(keep, 1) if summarised else keep
        users = self._users()
        if len(users) <= keep:
            raise InvalidRequest("The conversation has no earlier messages to leave out.")
        if summarised:
            first_kept = users[-keep]
            return self._summaries.begin(self._before(first_kept), CONTEXT_REQUEST, first_kept.id)
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
        model = self._client.snapshot().model
        tokens = self._tokens([*system, *nodes[first:]], text, images)
        return model is not None and tokens < model.context_length

    def tokens_with(self, text: str, images: Sequence[Image] = ()) -> int:
        """Tokens of the prompt of a message after all that is in the context.

        Cost: one tokenization of the message.

        Raises:
            EngineUnavailable: the model is not loaded.
        """
        return self._tokens(self._loaded.current.nodes, text, images)

    def outlook(self, *, summarised: bool, keep: int = KEPT_MESSAGES) -> Outlook:
        """What the model would know after `shorten`.

        Raises:
            EngineUnavailable: the model is not loaded.
        """
        users = self._users()
        keep = min(max(keep, 1) if summarised else keep, len(users))
        kept = users[len(users) - keep :]
        left = users[: len(users) - keep]
        unread = 0
        if summarised and left and kept:
            read = {
                node.id for node in self._summaries.readable(self._before(kept[0]), CONTEXT_REQUEST)
            }
            unread = sum(node.id not in read for node in left)
        return Outlook(tuple(node.text for node in kept), len(left), unread)

    def _users(self) -> list[Node]:
        """The user's messages in the context."""
        return [
            node for node in in_context(self._loaded.current.nodes) if node.kind is NodeKind.USER
        ]

    def _before(self, node: Node) -> list[Node]:
        nodes = self._loaded.current.nodes
        return nodes[: nodes.index(node)]

    def _tokens(self, nodes: Sequence[Node], text: str, images: Sequence[Image]) -> int:
        text = self._check_input(text)
        message = self._new_nodes.make(
            self._loaded.current, None, NodeKind.USER, text, images=tuple(images)
        )
        return len(self._answering.builder.build([*nodes, message]).token_ids)
