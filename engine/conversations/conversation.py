"""`Conversation`: an open conversation, its path from root to head and its running answer."""

from collections import deque
from dataclasses import dataclass, field

from engine.conversations.answer import Answer
from engine.conversations.tree import Node, NodeKind, NodeView, TreeSummary, view_of


@dataclass(slots=True)
class Conversation:
    """State of one open tree, owned by `TreeSession`, which keeps it consistent with the store.

    Attributes:
        saved: whether the tree is in the store; False while the conversation is empty.
        nodes: root to head. While `answer` runs, the last one is out of date; `path` is not.
        system_prompt: the system prompt of the next message.
        system_optional: whether the system prompt is a default, omitted if the chat template does not
            support one.
        answer: the running answer, or None.
        queued: messages to send after the running answer, oldest first.
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
        """The messages from root to head, including the running answer's text so far."""
        views = [view_of(node) for node in self.nodes]
        if self.answer is not None:
            views[-1] = view_of(self.answer.node())
        return views

    def sent_system_prompt(self) -> str | None:
        """The system prompt in effect at the head, or None."""
        systems = [node.text for node in self.nodes if node.kind is NodeKind.SYSTEM]
        return (systems[-1] or None) if systems else None

    def context_used(self) -> int:
        """Tokens of the last prompt and its answer; 0 before the first answer."""
        if self.answer is not None and self.answer.n_prompt:
            return self.answer.n_prompt + self.answer.n_gen
        for node in reversed(self.nodes):
            if node.kind is NodeKind.ASSISTANT and node.n_prompt:
                return node.n_prompt + (node.n_gen or 0)
        return 0

    def summary(self) -> TreeSummary:
        """Its entry in the list, from what is in memory."""
        messages = [n for n in self.nodes if n.kind in (NodeKind.USER, NodeKind.ASSISTANT)]
        updated_at = max((node.created_at for node in messages), default=0.0)
        return TreeSummary(self.id, self.title, updated_at, len(messages))

    def contains(self, query: str) -> bool:
        """Whether the title or a message contains the query; case is ignored."""
        texts = (self.title, *(node.text for node in self.path()))
        return any(query.casefold() in text.casefold() for text in texts)

    def detach_answer(self) -> None:
        """Store the finished answer's node in the path and drop the answer."""
        if self.answer is not None:
            self.nodes[-1] = self.answer.node()
            self.answer = None
