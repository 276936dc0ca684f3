"""`Conversation`: a conversation in memory, with its tree, the path that is open and its running answers."""

from collections import deque
from dataclasses import dataclass, field

from engine.api.generation_defaults import SamplingChoice
from engine.conversations.answer import Answer
from engine.conversations.branch_tree import BranchTree
from engine.conversations.tree import Node, NodeKind, NodeView, TreeSummary, view_of


@dataclass(slots=True)
class Conversation:
    """State of one conversation, owned by `TreeSession`, which keeps it consistent with the store.

    Attributes:
        saved: whether the tree is in the store; False while the conversation is empty.
        nodes: the open path, root to HEAD. Nodes whose answer runs are out of date; `path` is not.
        tree: all branches. Nodes whose answer runs are out of date; `view` is not.
        system_prompt: the system prompt of the next message.
        system_optional: whether the system prompt is a default, omitted if the chat template does not
            support one.
        answers: the running answers of all branches, by node id.
        sampling: parameters set for the answers after a node of the tree, by its id, empty for the
            first; those of earlier answers are stored with them.
        queues: messages to send after a running answer, oldest first, by the answer's node id.
        version: increases with every change other than new text.
    """

    id: str
    title: str
    system_prompt: str | None
    system_optional: bool = False
    saved: bool = False
    nodes: list[Node] = field(default_factory=list)
    tree: BranchTree = field(default_factory=BranchTree)
    answers: dict[str, Answer] = field(default_factory=dict)
    sampling: dict[str, SamplingChoice] = field(default_factory=dict)
    queues: dict[str, deque[str]] = field(default_factory=dict)
    version: int = 0

    @property
    def head(self) -> str | None:
        """The id of the last node of the open path; None if the conversation is empty."""
        return self.nodes[-1].id if self.nodes else None

    @property
    def answer(self) -> Answer | None:
        """The running answer at the end of the open path, or None."""
        return self.answers.get(self.nodes[-1].id) if self.nodes else None

    @property
    def queued(self) -> deque[str]:
        """Messages to send after the running answer of the open path, oldest first."""
        return self.queues.get(self.head or "", deque())

    def queue(self, text: str) -> None:
        """Queue a message after the running answer of the open path."""
        self.queues.setdefault(self.head or "", deque()).append(text)

    def path(self) -> list[NodeView]:
        """The messages from root to HEAD, including the running answer's text so far."""
        return [self.view(node.id) for node in self.nodes]

    def view(self, node_id: str) -> NodeView:
        """A node of any branch, including the text so far if its answer runs."""
        answer = self.answers.get(node_id)
        return self.tree[node_id] if answer is None else answer.view()

    def sent_system_prompt(self) -> str | None:
        """The system prompt in effect at HEAD, or None."""
        return system_prompt_of(self.nodes)

    def context_used(self) -> int:
        """Tokens of the last prompt of the open path and its answer; 0 before the first answer."""
        answer = self.answer
        if answer is not None and answer.n_prompt:
            return answer.n_prompt + answer.n_gen
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
        """Whether the title or a message of the open path contains the query; case is ignored."""
        texts = (self.title, *(node.text for node in self.path()))
        return any(query.casefold() in text.casefold() for text in texts)

    def finish_answer(self, answer: Answer) -> None:
        """Store a finished answer's node in the tree and the path, and drop the answer."""
        node = answer.node()
        self.tree.add(view_of(node))
        self.nodes = [node if old.id == node.id else old for old in self.nodes]
        self.answers.pop(node.id, None)
        self.version += 1


def system_prompt_of(path: list[Node]) -> str | None:
    """The system prompt in effect at the end of a path, or None."""
    systems = [node.text for node in path if node.kind is NodeKind.SYSTEM]
    return (systems[-1] or None) if systems else None
