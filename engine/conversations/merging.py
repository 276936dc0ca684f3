"""`Merging`: joining another branch into the open path: copied, summarised, or one of its answers picked.

Only the part that two branches have in common can share KV.
"""

from dataclasses import dataclass, replace
from typing import Literal

from engine.api.errors import InvalidRequest
from engine.api.fork_price import ForkPrice
from engine.conversations.conversation import Conversation
from engine.conversations.loaded_conversations import LoadedConversations
from engine.conversations.new_nodes import NewNodes
from engine.conversations.open_nodes import OpenNodes
from engine.conversations.summaries import Summaries
from engine.conversations.tokens import Tokens
from engine.conversations.tree import Node, NodeKind, NodeStatus

SUMMARY_REQUEST = (
    "Summarise what was said above since the conversation took this turn, in a few sentences. Keep names, "
    "numbers and decisions."
)

MergeKind = Literal["graft", "summary", "pick"]


@dataclass(frozen=True, slots=True)
class MergeCost:
    """Tokens of the next prompt, and those of them that are not in the KV of the open path.

    Attributes:
        total: tokens of the prompt that the merge leads to.
        recomputed: tokens of it to compute.
    """

    total: int
    recomputed: int


class Merging:
    """Merges of the open conversation's branches. Used by the session's thread.

    Args:
        loaded: the conversations in memory.
        new_nodes: adds nodes.
        nodes: the messages of the open conversation.
        tokens: the tokens of its prompts.
        summaries: writes summaries.
    """

    def __init__(
        self,
        loaded: LoadedConversations,
        new_nodes: NewNodes,
        nodes: OpenNodes,
        tokens: Tokens,
        summaries: Summaries,
    ) -> None:
        self._loaded = loaded
        self._new_nodes = new_nodes
        self._nodes = nodes
        self._tokens = tokens
        self._summaries = summaries

    def other_branches(self) -> list[str]:
        """The last nodes of the branches beside the open path, newest first."""
        current = self._loaded.current
        own = {node.id for node in current.nodes}
        return sorted((leaf for leaf in current.tree.leaves() if leaf not in own), reverse=True)

    def cost(self, node_id: str, kind: MergeKind, price: ForkPrice | None) -> MergeCost:
        """The predicted cost of merging a node's branch into the open path.

        A summary is written from a prompt that continues the other branch; the others add to the open path.

        Args:
            node_id: the other branch's last node.
            kind: how to merge.
            price: that of continuing the node; without it a summary counts as computed from its first
                token.

        Raises:
            PravahaError: the model is not loaded, or the chat template rejects the messages.
        """
        current, prompt_ids = self._loaded.current, self._tokens.prompt_ids
        if kind == "summary":
            total = len(prompt_ids(node_id))
            return MergeCost(total, total if price is None else min(total, price.prefill_tokens))
        other = len(prompt_ids(node_id))
        if kind == "graft":
            parted = current.tree.common_ancestor(current.head or "", node_id)
            added = other - (len(prompt_ids(parted)) if parted is not None else 0)
            return MergeCost(len(prompt_ids(current.head or "")) + added, added)
        added = current.view(node_id).n_gen or 0
        users = [node.id for node in current.nodes if node.kind is NodeKind.USER]
        if not users:
            raise InvalidRequest("The open path has no message to answer.")
        return MergeCost(len(prompt_ids(users[-1])) + added, added)

    def merge(self, node_id: str, kind: MergeKind) -> str:
        """Merge a node's branch into the open path; what was done, as a sentence.

        Raises:
            PravahaError: as the method that it calls.
        """
        if kind == "graft":
            return f"Messages copied after this branch: {self.graft(node_id)}."
        if kind == "pick":
            self.cherry_pick(node_id)
            return "The answer was copied beside the last one."
        self.summarise(node_id)
        return "The model summarises the other branch."

    def graft(self, node_id: str) -> int:
        """Copy the messages of another branch, since it parted from the open path, after HEAD; how many.

        Raises:
            InvalidRequest: the node is on the open path already, or one of the messages is incomplete.
        """
        conversation = self._loaded.current
        others = self._other_side(conversation, node_id)
        with self._loaded.writing():
            path = list(conversation.nodes)
            copies: list[Node] = []
            for other in others:
                parent = (*path, *copies)[-1]
                copies.append(self._copy(conversation, other, parent))
            self._new_nodes.add(conversation, path, copies, "graft", end=copies[-1])
        return len(copies)

    def cherry_pick(self, node_id: str) -> str:
        """Copy one answer of another branch beside the last answer of the open path; the copy's id.

        Raises:
            InvalidRequest: not a finished answer, or the open path has no message to answer.
        """
        conversation = self._loaded.current
        picked = self._nodes.full(self._nodes.finished(node_id).id)
        path = list(conversation.nodes)
        while path and path[-1].kind is not NodeKind.USER:
            path.pop()
        if picked.kind is not NodeKind.ASSISTANT or not path:
            raise InvalidRequest("Cherry-pick copies an answer beside the open path's last answer.")
        with self._loaded.writing():
            copy = self._copy(conversation, picked, path[-1])
            self._new_nodes.add(conversation, path, [copy], "cherry-pick", end=copy)
        return copy.id

    def summarise(self, node_id: str) -> str:
        """Let the model summarise another branch since it parted from the open path; the new node's id.

        The summary is added after HEAD, and later prompts contain it. Its own prompt continues the
        other branch, whose KV it shares.

        Raises:
            InvalidRequest: the node is on the open path already, or one of the messages is incomplete.
            QueueFull, EngineUnavailable: the engine accepts no requests; nothing was added.
        """
        conversation = self._loaded.current
        self._other_side(conversation, node_id)
        return self._summaries.begin(self._nodes.path_to(node_id), SUMMARY_REQUEST)

    def _other_side(self, conversation: Conversation, node_id: str) -> list[Node]:
        """The messages from where a node's branch parted from the open path down to the node."""
        self._nodes.view_of(node_id)
        if not conversation.nodes:
            raise InvalidRequest("The open path is empty: go to a message first.")
        own = {node.id for node in conversation.nodes}
        others = [node for node in self._nodes.path_to(node_id) if node.id not in own]
        if not others:
            raise InvalidRequest("The message is on the open path already.")
        if any(node.status is NodeStatus.STREAMING for node in others):
            raise InvalidRequest("An answer of that branch is running: stop it first.")
        return others

    def _copy(self, conversation: Conversation, node: Node, parent: Node) -> Node:
        """A copy of a node under another parent; an answer keeps its token ids."""
        fresh = self._new_nodes.make(conversation, parent, node.kind, node.text, node.status)
        answer = node.kind is NodeKind.ASSISTANT
        return replace(
            node,
            id=fresh.id,
            parent_id=parent.id,
            created_at=fresh.created_at,
            forked_from=node.id,
            fork_token=None,
            label=None,
            rating=None,
            token_ids=node.token_ids if answer else None,
            tokenizer=node.tokenizer if answer else None,
            template=None,
        )
