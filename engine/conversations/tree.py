"""Frozen views of the conversation tree. A node never changes once it stopped streaming."""

from dataclasses import dataclass
from enum import StrEnum

from engine.api.request import TopLogprob


class NodeKind(StrEnum):
    """What a node is."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"
    NOTE = "note"
    SUMMARY = "summary"


class NodeStatus(StrEnum):
    """`streaming` becomes one of the others, once."""

    STREAMING = "streaming"
    DONE = "done"
    STOPPED = "stopped"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Node:
    """One message as the store keeps it.

    Attributes:
        id: ULID.
        parent_id: None for a root.
        text: for an assistant, a view of `token_ids`.
        token_ids: an assistant's generated ids, stop token included; for a user, the ids of the
            whole turn as it was fed (the template's scaffolding since the previous answer
            included), None until first used.
        tokenizer: fingerprint of the tokenizer that `token_ids` belong to.
        template: for a user, digest of the text that `token_ids` were made from.
        logprobs: one per generated id, or empty.
        topk: alternatives per generated id, or empty.
        finish: the engine's finish reason, None while streaming or when the writer died.
        error: one sentence when status is `error`.
        created_at: seconds since the epoch.
        sampling: JSON of the sampling parameters.
        n_prompt, n_gen: tokens fed and generated; `n_cached`: how many of those fed came from the
            prefix cache, None while the engine does not report it.
        ttft_us, decode_us: microseconds to the first token, and from it to the last.
        forked_from, fork_token: the node and token index that this one was forked at.
    """

    id: str
    tree_id: str
    parent_id: str | None
    kind: NodeKind
    text: str
    status: NodeStatus
    created_at: float
    token_ids: tuple[int, ...] | None = None
    logprobs: tuple[float, ...] = ()
    topk: tuple[tuple[TopLogprob, ...], ...] = ()
    tokenizer: str | None = None
    template: str | None = None
    finish: str | None = None
    error: str | None = None
    model: str | None = None
    sampling: str | None = None
    seed: int | None = None
    forked_from: str | None = None
    fork_token: int | None = None
    n_prompt: int | None = None
    n_cached: int | None = None
    n_gen: int | None = None
    ttft_us: int | None = None
    decode_us: int | None = None
    label: str | None = None
    rating: int | None = None
    pruned_at: float | None = None


@dataclass(frozen=True, slots=True)
class NodeView:
    """One message of the path on screen: a `Node` without its token data."""

    id: str
    kind: NodeKind
    text: str
    status: NodeStatus
    finish: str | None
    error: str | None
    created_at: float
    n_prompt: int | None
    n_gen: int | None
    ttft_us: int | None
    decode_us: int | None
    model: str | None


@dataclass(frozen=True, slots=True)
class NodeDelta:
    """What happened to one node since the last `TreeSession.pump`.

    Attributes:
        text: the *new* text, to be appended; may be empty.
        status: the node's status now.
        finish: why it ended, None while streaming.
        error: one sentence when status is `error`.
    """

    node_id: str
    text: str
    status: NodeStatus
    finish: str | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class TreeSummary:
    """One conversation in the list.

    Attributes:
        updated_at: seconds since the epoch.
        messages: user and assistant messages of every branch.
    """

    id: str
    title: str
    updated_at: float
    messages: int


def view_of(node: Node) -> NodeView:
    """The node as the screen needs it."""
    return NodeView(
        id=node.id,
        kind=node.kind,
        text=node.text,
        status=node.status,
        finish=node.finish,
        error=node.error,
        created_at=node.created_at,
        n_prompt=node.n_prompt,
        n_gen=node.n_gen,
        ttft_us=node.ttft_us,
        decode_us=node.decode_us,
        model=node.model,
    )
