"""What merging a branch into the open path costs, and the branches that can be merged."""

from dataclasses import dataclass
from typing import Literal

from engine.api.errors import InvalidRequest
from engine.api.fork_price import ForkPrice
from engine.conversations.session import TreeSession
from engine.conversations.tree import NodeKind

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


def merge_cost(
    session: TreeSession, node_id: str, kind: MergeKind, price: ForkPrice | None
) -> MergeCost:
    """The predicted cost of merging a node's branch into the open path.

    A summary is written from a prompt that continues the other branch; the others add to the open path.

    Args:
        session: the session.
        node_id: the other branch's last node.
        kind: how to merge.
        price: that of continuing the node; without it a summary counts as computed from its first token.

    Raises:
        PravahaError: the model is not loaded, or the chat template rejects the messages.
    """
    prompt_ids = session.tokens.prompt_ids
    if kind == "summary":
        total = len(prompt_ids(node_id))
        return MergeCost(total, total if price is None else min(total, price.prefill_tokens))
    other = len(prompt_ids(node_id))
    if kind == "graft":
        parted = session.tree.common_ancestor(session.head or "", node_id)
        added = other - (len(prompt_ids(parted)) if parted is not None else 0)
        return MergeCost(len(prompt_ids(session.head or "")) + added, added)
    added = session.view(node_id).n_gen or 0
    users = [node.id for node in session.path() if node.kind is NodeKind.USER]
    if not users:
        raise InvalidRequest("The open path has no message to answer.")
    return MergeCost(len(prompt_ids(users[-1])) + added, added)


def other_branches(session: TreeSession) -> list[str]:
    """The last nodes of the branches beside the open path, newest first."""
    own = {node.id for node in session.path()}
    return sorted((leaf for leaf in session.tree.leaves() if leaf not in own), reverse=True)


def merge(session: TreeSession, node_id: str, kind: MergeKind) -> str:
    """Merge a node's branch into the open path; what was done, as a sentence.

    Raises:
        PravahaError: as the method of `Branches` that it calls.
    """
    if kind == "graft":
        return f"Messages copied after this branch: {session.branches.graft(node_id)}."
    if kind == "pick":
        session.branches.cherry_pick(node_id)
        return "The answer was copied beside the last one."
    session.branches.summarise(node_id)
    return "The model summarises the other branch."
