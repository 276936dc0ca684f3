"""The store against a dictionary model, under random writes, undo, redo and reopening."""

import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, precondition, rule

from engine.api.request import TopLogprob
from engine.conversations.assignment import Assignment
from engine.conversations.storage.store import Store
from engine.conversations.tree import Node, NodeKind, NodeStatus

texts = st.text(max_size=20)
ids = st.lists(st.integers(0, 2**32 - 1), max_size=5).map(tuple)


class StoreMachine(RuleBasedStateMachine):
    """Applies each operation to the store and the model and compares both."""

    trees = Bundle("trees")
    nodes = Bundle("nodes")

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.time = 0.0
        self.count = 0
        self.titles: dict[str, str] = {}
        self.updated: dict[str, float] = {}
        self.archived: set[str] = set()
        self.model: dict[str, Node] = {}
        self.heads: dict[str, str] = {}
        # Per tree: (title, head) before each change, and those undone.
        self.done: dict[str, list[tuple[str, str, str | None]]] = {}
        self.undone: dict[str, list[tuple[str, str, str | None]]] = {}
        self.open()

    def open(self) -> None:
        self.store = Store.open(self.folder / "c.db", clock=self.tick)

    def tick(self) -> float:
        self.time += 1
        return self.time

    def fresh(self) -> str:
        self.count += 1
        return f"{self.count:05}"

    def state(self, tree: str) -> tuple[str, str | None]:
        return self.titles[tree], self.heads.get(tree)

    def changed(self, tree: str, name: str, before: tuple[str, str | None]) -> None:
        self.done[tree].append((name, *before))
        self.undone[tree].clear()

    @rule(target=trees, title=texts)
    def create_tree(self, title):
        tree = self.fresh()
        title = title.replace("\0", "")
        self.store.trees.create(tree, title)
        self.titles[tree], self.updated[tree] = title, self.time
        self.done[tree], self.undone[tree] = [], []
        return tree

    @rule(target=nodes, tree=trees, text=texts, streaming=st.booleans())
    def add_node(self, tree, text, streaming):
        before = self.state(tree)
        node = Node(
            id=self.fresh(),
            tree_id=tree,
            parent_id=self.heads.get(tree),
            kind=NodeKind.ASSISTANT if streaming else NodeKind.USER,
            text=text.replace("\0", ""),
            status=NodeStatus.STREAMING if streaming else NodeStatus.DONE,
            created_at=float(self.count),
        )
        self.store.nodes.add([node], name="send")
        self.model[node.id] = node
        self.heads[tree], self.updated[tree] = node.id, self.time
        self.changed(tree, "send", before)
        return node.id

    @rule(
        node=nodes,
        text=texts,
        token_ids=ids,
        end=st.sampled_from([None, NodeStatus.DONE, NodeStatus.STOPPED, NodeStatus.ERROR]),
    )
    def write(self, node, text, token_ids, end):
        known = self.model[node]
        if known.status is not NodeStatus.STREAMING:
            return
        written = replace(
            known,
            text=text.replace("\0", ""),
            token_ids=token_ids or None,
            logprobs=tuple(-0.5 for _ in token_ids),
            topk=tuple((TopLogprob(i, -1.5),) for i in token_ids),
            seed=2**64 - 1,
            status=end or NodeStatus.STREAMING,
        )
        self.store.nodes.update_streaming(written)
        self.model[node] = written
        self.tick_if(end is not None, known.tree_id)

    def tick_if(self, ended: bool, tree: str) -> None:
        if ended:
            self.updated[tree] = self.time

    @rule(tree=trees, title=texts)
    def rename(self, tree, title):
        before = self.state(tree)
        title = title.replace("\0", "")
        self.store.operations.assign(tree, "rename", [Assignment("title", "", title)])
        self.titles[tree] = title
        self.changed(tree, "rename", before)

    @rule(tree=trees)
    def undo(self, tree):
        expected = None
        if self.done[tree]:
            name, title, head = self.done[tree].pop()
            self.undone[tree].append((name, *self.state(tree)))
            self.restore(tree, title, head)
            expected = name
        assert self.store.operations.undo(tree) == expected

    @rule(tree=trees)
    def redo(self, tree):
        expected = None
        if self.undone[tree]:
            name, title, head = self.undone[tree].pop()
            self.done[tree].append((name, *self.state(tree)))
            self.restore(tree, title, head)
            expected = name
        assert self.store.operations.redo(tree) == expected

    def restore(self, tree: str, title: str, head: str | None) -> None:
        self.titles[tree] = title
        self.heads.pop(tree, None)
        if head is not None:
            self.heads[tree] = head

    @rule()
    def reopen(self):
        self.store.close()
        self.open()
        # No writer is left: streaming nodes become stopped.
        for key, node in self.model.items():
            if node.status is NodeStatus.STREAMING:
                self.model[key] = replace(node, status=NodeStatus.STOPPED)

    @rule(query=st.text(min_size=1, max_size=4).filter(lambda q: q.strip() and "\0" not in q))
    @precondition(lambda self: self.titles)
    def search_finds_what_contains_the_query(self, query):
        self.store.writes.wait()
        found = {tree.id for tree in self.store.searches.trees(query)}
        for tree, title in self.titles.items():
            texts = [
                node.text
                for node in self.model.values()
                if node.tree_id == tree and node.status is not NodeStatus.STREAMING
            ]
            if any(query.strip() in text for text in [title, *texts]):
                assert tree in found

    @invariant()
    def the_same_tree_is_read(self):
        self.store.writes.flush()
        for key, node in self.model.items():
            assert self.store.nodes.get(key) == node
        expected = sorted(self.titles, key=lambda t: (self.updated[t], t), reverse=True)
        assert [(t.id, t.title) for t in self.store.searches.trees()] == [
            (tree, self.titles[tree]) for tree in expected
        ]
        for tree in self.titles:
            head = self.heads.get(tree)
            assert self.store.trees.head(tree) == head
            chain = []
            while head is not None:
                chain.append(self.model[head])
                head = self.model[head].parent_id
            assert self.store.nodes.path(self.heads.get(tree, "")) == chain[::-1]
        self.store.check_integrity()

    def teardown(self):
        self.store.close()
        shutil.rmtree(self.folder)


TestStore = StoreMachine.TestCase
TestStore.settings = settings(max_examples=25, stateful_step_count=20)
