"""`Summaries`: summaries by the model, of another branch or of earlier messages, added after HEAD."""

from bisect import bisect_left

from engine.clients.engine_client import EngineClient
from engine.conversations.answering import Answering
from engine.conversations.chosen_sampling import ChosenSampling
from engine.conversations.errors import ContextFull
from engine.conversations.loaded_conversations import LoadedConversations
from engine.conversations.new_nodes import NewNodes
from engine.conversations.tree import Node, NodeKind

_MIN_TOKENS, _MAX_TOKENS = 64, 512
_SHARE = 10


def summary_tokens(context_length: int) -> int:
    """Most tokens of a summary, for which room is reserved: a tenth of the context, within bounds."""
    return max(_MIN_TOKENS, min(_MAX_TOKENS, context_length // _SHARE))


class Summaries:
    """The summaries in the open conversation. Used by the session's thread."""

    def __init__(
        self,
        client: EngineClient,
        loaded: LoadedConversations,
        answering: Answering,
        new_nodes: NewNodes,
        sampling: ChosenSampling,
    ) -> None:
        self._client = client
        self._loaded = loaded
        self._answering = answering
        self._new_nodes = new_nodes
        self._sampling = sampling

    def begin(self, summed: list[Node], request: str, first_kept: str | None = None) -> str:
        """Let the model summarise messages; the new node's id. Later prompts contain the summary.

        Args:
            summed: the messages, root first. The prompt continues them, and shares their KV, unless they
                leave the summary no room: see `readable`.
            request: asks the model for the summary; not added to the conversation.
            first_kept: of a summary that takes the place of earlier messages: the first one that stays.

        Raises:
            ContextFull: not even the last of the messages fits into the context beside a summary.
            QueueFull, EngineUnavailable: the engine accepts no requests; nothing was added.
        """
        current = self._loaded.current
        ask = self._new_nodes.make(current, summed[-1], NodeKind.USER, request)
        model = self._client.snapshot().model
        read = self.readable(summed, request)
        if not read:
            raise ContextFull("The messages leave no room for their summary.")
        with self._loaded.writing() as conversation:
            (answer,) = self._answering.begin(
                conversation, list(conversation.nodes), [], self._sampling.current, "summary",
                kind=NodeKind.SUMMARY, prompt=[*read, ask], forked_from=first_kept,
                limit=summary_tokens(model.context_length) if model else _MAX_TOKENS,
            )  # fmt: skip
        return answer.node_id

    def readable(self, summed: list[Node], request: str) -> list[Node]:
        """The messages that the model reads for their summary; none if there is no room.

        They leave the room of a summary: where all do not, the oldest are left out. Cost: the tokenization of
        the messages, and some renderings of the template.

        Raises:
            EngineUnavailable: the model is not loaded.
        """
        model = self._client.snapshot().model
        if model is None:
            return summed
        room = model.context_length - summary_tokens(model.context_length)
        ask = self._new_nodes.make(self._loaded.current, summed[-1], NodeKind.USER, request)
        starts = [at for at, node in enumerate(summed) if node.kind is NodeKind.USER]
        parts = [summed, *(_from(summed, start) for start in starts[1:])]

        def fits(part: list[Node]) -> bool:
            return len(self._answering.builder.build([*part, ask]).token_ids) <= room

        if fits(summed):
            return summed
        first = bisect_left(parts, True, key=fits)
        return parts[first] if first < len(parts) else []


def _from(nodes: list[Node], start: int) -> list[Node]:
    """The nodes from `start` on, after the system prompt."""
    system = [node for node in nodes[:start] if node.kind is NodeKind.SYSTEM]
    return [*system[-1:], *nodes[start:]]
