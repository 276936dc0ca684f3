"""`Summaries`: summaries by the model, of another branch or of earlier messages, added after HEAD."""

from engine.conversations.answering import Answering
from engine.conversations.chosen_sampling import ChosenSampling
from engine.conversations.loaded_conversations import LoadedConversations
from engine.conversations.new_nodes import NewNodes
from engine.conversations.tree import Node, NodeKind

SUMMARY_TOKENS = 256
"""Most tokens of a summary."""


class Summaries:
    """The summaries in the open conversation. Used by the session's thread."""

    def __init__(
        self,
        loaded: LoadedConversations,
        answering: Answering,
        new_nodes: NewNodes,
        sampling: ChosenSampling,
    ) -> None:
        self._loaded = loaded
        self._answering = answering
        self._new_nodes = new_nodes
        self._sampling = sampling

    def begin(self, summed: list[Node], request: str, first_kept: str | None = None) -> str:
        """Let the model summarise messages; the new node's id. Later prompts contain the summary.

        Args:
            summed: the messages, root first. The prompt continues them, and shares their KV.
            request: asks the model for the summary; not added to the conversation.
            first_kept: of a summary that takes the place of earlier messages: the first one that stays.

        Raises:
            ContextFull: the messages do not fit into the context.
            QueueFull, EngineUnavailable: the engine accepts no requests; nothing was added.
        """
        current = self._loaded.current
        ask = self._new_nodes.make(current, summed[-1], NodeKind.USER, request)
        with self._loaded.writing() as conversation:
            (answer,) = self._answering.begin(
                conversation, list(conversation.nodes), [], self._sampling.current, "summary",
                kind=NodeKind.SUMMARY, prompt=[*summed, ask], forked_from=first_kept,
                limit=SUMMARY_TOKENS,
            )  # fmt: skip
        return answer.node_id
