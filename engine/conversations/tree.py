"""Records of the conversation tree. A node is immutable once it has finished streaming."""

from dataclasses import dataclass, replace
from enum import StrEnum

from engine.api.image import Image
from engine.api.request import TopLogprob


class NodeKind(StrEnum):
    """The kind of a node.

    Attributes:
        TOOL: the results of the calls of the answer before it.
        NOTE: a limit of the context: the messages before `Node.forked_from` are not in later prompts.
        SUMMARY: a summary of another branch, or of the messages before `Node.forked_from`, which are then
            not in later prompts. The next user message in a prompt is preceded by its text.
    """

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"
    NOTE = "note"
    SUMMARY = "summary"


class NodeStatus(StrEnum):
    """The status of a node: `streaming`, then one of the final ones."""

    STREAMING = "streaming"
    DONE = "done"
    STOPPED = "stopped"
    ERROR = "error"


class Verdict(StrEnum):
    """What tests say about what an agent wrote; the finish reason of its node."""

    PASSED = "passed"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Node:
    """One message as stored.

    Attributes:
        id: ULID.
        parent_id: None for a root.
        text: for an assistant, the text of `token_ids`.
        token_ids: for an assistant, the generated ids, stop token included; for a user, the ids of
            the turn in the prompt, which includes the template's scaffolding since the previous
            answer, None until first used.
        tokenizer: fingerprint of the tokenizer that `token_ids` belong to.
        template: for a user, digest of the text that `token_ids` were made from.
        logprobs: one per generated id, or empty.
        topk: alternatives per generated id, or empty.
        drafted: one per generated id, whether it is an accepted draft token; empty if unknown.
        context: for a user, the text right before the message in the prompt: the passages that were found
            for it, marked as untrusted. None if none were sought.
        passages: for a user, JSON of these passages; see `passage_source`.
        n_passages: for a user, their number; for an assistant, that of its message. None if none were sought.
        citations: for an assistant, JSON of the check of its citations; None until it was checked.
        checked_text: for an assistant, its text as it is shown after that check, without its calls, or
            without its reasoning.
        reasoning: for an assistant, its reasoning without the markers; None if it has none.
        answer_at: for an assistant with reasoning, where in `text` the answer after it begins.
        n_reasoning: number of tokens of the reasoning.
        reasoning_us: microseconds from the first token to the end of the reasoning.
        calls: for a tool, JSON of the calls that the text has the results of; see `made_calls`.
        n_images: for a user, the number of its images; None if it has none.
        images: for a user, the images that precede the message in the prompt. A table of their own.
        finish: the finish reason of the request, or `repetition` or `content_filter` if it was cancelled
            for that; of what an agent wrote and tests judged, a `Verdict`; None while streaming or
            if the writer died.
        error: one sentence when status is `error`.
        created_at: seconds since the epoch.
        sampling: JSON of the sampling parameters.
        n_prompt, n_gen: number of prompt and generated tokens; `n_cached`: prompt tokens found in the
            prefix cache, None until reported.
        ttft_us, decode_us: microseconds to the first token, and from the first to the last.
        forked_from: of an answer: the node that it was forked or copied from. Of a note or a summary of
            the context: the first message that stays in later prompts, itself if none does.
        fork_token: number of tokens that a fork at a token has in common with `forked_from`, a forced
            token included.
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
    drafted: tuple[bool, ...] = ()
    context: str | None = None
    passages: str | None = None
    n_passages: int | None = None
    citations: str | None = None
    checked_text: str | None = None
    n_images: int | None = None
    calls: str | None = None
    reasoning: str | None = None
    answer_at: int | None = None
    n_reasoning: int | None = None
    reasoning_us: int | None = None
    images: tuple[Image, ...] = ()

    @property
    def prompt_text(self) -> str:
        """What the model reads: the message after its passages, or the answer after its reasoning."""
        return f"{self.context or ''}{self.text[self.answer_at or 0 :]}"


@dataclass(frozen=True, slots=True)
class NodeView:
    """A message for display: a `Node` without its token data. Fields as in `Node`.

    Attributes:
        remarks: what a `TextGuard` says about the text, each a few words; never stored.
    """

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
    parent_id: str | None = None
    n_cached: int | None = None
    seed: int | None = None
    forked_from: str | None = None
    fork_token: int | None = None
    label: str | None = None
    rating: int | None = None
    pruned_at: float | None = None
    n_passages: int | None = None
    citations: str | None = None
    checked_text: str | None = None
    n_images: int | None = None
    calls: str | None = None
    reasoning: str | None = None
    n_reasoning: int | None = None
    reasoning_us: int | None = None
    remarks: tuple[str, ...] = ()

    def with_flag(self, name: str, value: object) -> "NodeView":
        """The view with another `label`, `rating` or `pruned_at`."""
        return replace(self, **{name: value})  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class NodeDelta:
    """The change of a node since the last `TreeSession.pump`.

    Attributes:
        text: new text to append; may be empty.
        status: the current status.
        finish: the finish reason; None while streaming.
        error: one sentence when status is `error`.
    """

    node_id: str
    text: str
    status: NodeStatus
    finish: str | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A message that a search found, in any branch of any conversation.

    Attributes:
        title: the conversation's title.
        created_at: seconds since the epoch.
    """

    tree_id: str
    title: str
    node_id: str
    kind: NodeKind
    text: str
    created_at: float


@dataclass(frozen=True, slots=True)
class TreeSummary:
    """A conversation in the list.

    Attributes:
        updated_at: seconds since the epoch.
        messages: number of user and assistant messages in all branches.
        match: the line of a message that contains what the list was filtered by; empty if none does.
    """

    id: str
    title: str
    updated_at: float
    messages: int
    match: str = ""


def awaits_agent(node: "Node | NodeView") -> bool:
    """Whether a node is the place of what an agent, not this engine, will answer."""
    return node.status is NodeStatus.STREAMING and node.model is not None and node.n_prompt is None


def view_of(node: Node) -> NodeView:
    """The view of a node."""
    return NodeView(**{name: getattr(node, name) for name in VIEW_FIELDS})


VIEW_FIELDS = tuple(name for name in NodeView.__dataclass_fields__ if name != "remarks")
"""Names of the fields of `NodeView` that are also columns of the table `node`."""
