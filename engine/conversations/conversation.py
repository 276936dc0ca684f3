"""An open conversation: the path from root to head, and what is going on at its end."""

from collections import deque
from dataclasses import dataclass, field

from engine.conversations.answer import Answer
from engine.conversations.tree import Node, NodeKind, NodeStatus, NodeView, view_of


@dataclass(slots=True)
class Conversation:
    """State of one open tree. Belongs to `TreeSession`, which keeps the store in step with it.

    Attributes:
        saved: whether the tree is in the store; an empty conversation is not.
        nodes: root to head. The last one is stale while `answer` writes it: see `path`.
        system_prompt: what the next message will be sent with.
        system_optional: whether the prompt is a default, to be left out where the model's template
            takes none, rather than the user's wish.
        queued: messages waiting for the running answer's end, oldest first.
    """

    id: str
    title: str
    system_prompt: str | None
    system_optional: bool = False
    saved: bool = False
    nodes: list[Node] = field(default_factory=list)
    answer: Answer | None = None
    queued: deque[str] = field(default_factory=deque)

    def path(self) -> list[NodeView]:
        """The messages root to head, the running answer up to date."""
        views = [view_of(node) for node in self.nodes]
        if self.answer is not None:
            views[-1] = view_of(self.answer.node())
        return views

    def sent_system_prompt(self) -> str | None:
        """The system prompt in force at the head; None when there is none."""
        systems = [node.text for node in self.nodes if node.kind is NodeKind.SYSTEM]
        return (systems[-1] or None) if systems else None

    def context_used(self) -> int:
        """Tokens of the conversation as last fed and continued."""
        if self.answer is not None and self.answer.n_prompt:
            return self.answer.n_prompt + self.answer.n_gen
        for node in reversed(self.nodes):
            if node.kind is NodeKind.ASSISTANT and node.n_prompt:
                return node.n_prompt + (node.n_gen or 0)
        return 0

    def written_elsewhere(self) -> bool:
        """Whether another live process is writing the last answer."""
        return (
            self.answer is None
            and bool(self.nodes)
            and self.nodes[-1].status is NodeStatus.STREAMING
        )

    def settle(self) -> None:
        """Put the ended answer in its place on the path."""
        if self.answer is not None:
            self.nodes[-1] = self.answer.node()
            self.answer = None
