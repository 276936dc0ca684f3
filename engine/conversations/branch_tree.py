"""`BranchTree`: the nodes of one conversation with its pointers, in memory.

It mirrors what the store holds, without token data, so that the tree can be shown and walked without
reading the disk. Pruned nodes are kept and left out of what the methods return, unless they say so.

Invariants: a node's parent was added before it; `children` lists nodes in the order of creation; the
current child of a node is one of its children. Cost: O(1) for one node, O(depth) for a path,
O(size) for a subtree.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence

from engine.conversations.assignment import Assignment
from engine.conversations.tree import NodeKind, NodeView

HEAD = "HEAD"
MAIN = "main"
"""The name of a conversation's first branch."""
FORK = "fork"
"""Base of the names of other branches."""
_ROOT = ""


class BranchTree:
    """The tree of a conversation.

    Args:
        nodes: parents before children.
        checkout: the current child by parent; '' is the parent of roots.
        heads: node by branch name, `HEAD` included, those used last at the end.
        sources: the collections that are attached from a node on, by node, as JSON; '' stands for the root.
        models: the models that were chosen from a node on, by node; '' stands for the root.
    """

    def __init__(
        self,
        nodes: Iterable[NodeView] = (),
        checkout: Mapping[str, str] | None = None,
        heads: Mapping[str, str] | None = None,
        sources: Mapping[str, str] | None = None,
        models: Mapping[str, str] | None = None,
    ) -> None:
        self._nodes: dict[str, NodeView] = {}
        self._children: dict[str, list[str]] = {}
        self._checkout = dict(checkout or {})
        self._heads = dict(heads or {})
        self._sources = dict(sources or {})
        self._models = dict(models or {})
        for node in nodes:
            self.add(node)

    # Nodes.

    def __len__(self) -> int:
        return sum(node.pruned_at is None for node in self._nodes.values())

    def __contains__(self, node_id: str) -> bool:
        return node_id in self._nodes

    def __getitem__(self, node_id: str) -> NodeView:
        return self._nodes[node_id]

    def nodes(self) -> Iterator[NodeView]:
        """All nodes that are not pruned, parents before children."""
        return (node for node in self._nodes.values() if node.pruned_at is None)

    def add(self, node: NodeView) -> None:
        """Add a node, or replace the one of this id."""
        if node.id not in self._nodes:
            self._children.setdefault(node.parent_id or _ROOT, []).append(node.id)
        self._nodes[node.id] = node

    def children(self, node_id: str | None) -> list[str]:
        """The children of a node; of None the roots."""
        found = self._children.get(node_id or _ROOT, [])
        return [child for child in found if self._nodes[child].pruned_at is None]

    def siblings(self, node_id: str) -> list[str]:
        """The nodes with this node's parent, itself included."""
        return self.children(self._nodes[node_id].parent_id)

    def current_child(self, node_id: str | None) -> str | None:
        """The child that is current, else the newest one; None at a leaf."""
        children = self.children(node_id)
        current = self._checkout.get(node_id or _ROOT)
        return current if current in children else children[-1] if children else None

    def leaf(self, node_id: str | None) -> str | None:
        """The leaf that is reached from a node (None: from the roots) by following the current children."""
        while (child := self.current_child(node_id)) is not None:
            node_id = child
        return node_id

    def path(self, node_id: str | None) -> list[str]:
        """The ids from the root to this node; empty for None."""
        ids: list[str] = []
        while node_id is not None:
            ids.append(node_id)
            node_id = self._nodes[node_id].parent_id
        return ids[::-1]

    def subtree(self, node_id: str) -> Iterator[str]:
        """The node and all nodes below it, parents before children."""
        waiting = [node_id]
        while waiting:
            current = waiting.pop()
            yield current
            waiting += reversed(self.children(current))

    def common_ancestor(self, one: str, other: str) -> str | None:
        """The last node that the paths to both have in common; None if their roots differ."""
        shared = None
        for a, b in zip(self.path(one), self.path(other), strict=False):
            if a != b:
                break
            shared = a
        return shared

    @property
    def branched(self) -> bool:
        """Whether a node, or the conversation itself, has several children. Costs O(nodes)."""
        return any(
            len(ids) > 1 and len(self.children(parent)) > 1
            for parent, ids in self._children.items()
        )

    def leaves(self) -> list[str]:
        """The nodes without children."""
        return [
            node.id
            for node in self._nodes.values()
            if node.pruned_at is None and not self.children(node.id)
        ]

    # Pointers.

    @property
    def head(self) -> str | None:
        """The node that the conversation is open at; None if it is empty."""
        return self._heads.get(HEAD)

    def branches(self) -> dict[str, str]:
        """Node by branch name, those used last at the end. Branches of pruned nodes are left out."""
        return {
            name: node_id
            for name, node_id in self._heads.items()
            if name != HEAD and self._nodes[node_id].pruned_at is None
        }

    def branch_at(self, node_id: str | None) -> str | None:
        """The name of the branch that ends at a node, the one used last; None if there is none."""
        names = [name for name, at in self._heads.items() if at == node_id and name != HEAD]
        return names[-1] if names else None

    def branch_of(self, node_id: str) -> str | None:
        """The name of the branch that ends at the node, or else at the leaf below it."""
        return self.branch_at(node_id) or self.branch_at(self.leaf(node_id))

    def fresh_name(self, base: str) -> str:
        """`base`, or `base` with the first number from 2 that makes it unused."""
        name, number = base, 1
        while name in self._heads:
            number += 1
            name = f"{base}-{number}"
        return name

    def sources_after(self, node_id: str | None) -> tuple[str, ...]:
        """The collections that are attached to a branch for what follows a node; None: for its beginning.

        They are those of the nearest node from there to the root at which they were changed, so that a fork
        keeps what was attached before it.
        """
        for one in [*reversed(self.path(node_id)), _ROOT]:
            if one in self._sources:
                return tuple(json.loads(self._sources[one]))
        return ()

    def attaches(self, node_id: str | None, names: Sequence[str]) -> list[Assignment]:
        """The assignments that attach exactly these collections to what will follow a node.

        The branches that go on from there already keep theirs.
        """
        before = self.sources_after(node_id)
        kept = [
            _attached(child, before)
            for child in self._children.get(node_id or _ROOT, [])
            if child not in self._sources
        ]
        return [*kept, _attached(node_id or _ROOT, names)]

    def chosen_model(self, node_id: str | None) -> str | None:
        """The model that was chosen at a node, None for the root; None if none was."""
        return self._models.get(node_id or _ROOT)

    def model_after(self, upwards: Iterable[str]) -> str | None:
        """The model that answers at the end of a path: that chosen last, else that of the last answer.

        Costs as many steps as there are nodes after that.

        Args:
            upwards: the ids of the path, the root last; nodes that are not in the tree yet are passed over.
        """
        for one in upwards:
            if (chosen := self._models.get(one)) is not None:
                return chosen
            node = self._nodes.get(one)
            if node is not None and node.kind is NodeKind.ASSISTANT and node.model is not None:
                return node.model
        return self._models.get(_ROOT)

    def setting_pointers(self) -> list[Assignment]:
        """The assignments that attach the same collections and choose the same models in another tree."""
        return [
            *(Assignment("sources", node_id, names) for node_id, names in self._sources.items()),
            *self._model_pointers(),
        ]

    def _model_pointers(self) -> list[Assignment]:
        return [Assignment("model", node_id, name) for node_id, name in self._models.items()]

    def pointers(self) -> list[Assignment]:
        """The assignments that make the checkout, the heads and the chosen models in a tree without any."""
        return [
            *(Assignment("checkout", parent, child) for parent, child in self._checkout.items()),
            *(Assignment("head", name, node_id) for name, node_id in self._heads.items()),
            *self._model_pointers(),
        ]

    # Changes: what to assign for them, and the effect of an assignment.

    def moves_to(self, node_id: str, path: Iterable[str] | None = None) -> list[Assignment]:
        """The assignments that open the conversation at a node: the checkout along the path, and HEAD.

        Args:
            node_id: the node.
            path: ids from the root to it, if it is not in the tree yet.
        """
        ids = list(path) if path is not None else self.path(node_id)
        moves = [
            Assignment("checkout", parent, child)
            for parent, child in zip([_ROOT, *ids], ids, strict=False)
            if self._checkout.get(parent) != child
        ]
        if self.head != node_id:
            moves.append(Assignment("head", HEAD, node_id))
        return moves

    def apply(self, changes: Iterable[Assignment]) -> None:
        """The effect of assignments to `head`, `checkout`, `sources`, `model` and the flags of nodes."""
        pointers = {
            "head": self._heads,
            "checkout": self._checkout,
            "sources": self._sources,
            "model": self._models,
        }
        for change in changes:
            if change.target in pointers:
                values = pointers[change.target]
                values.pop(change.key, None)  # one that is set anew comes last
                if isinstance(change.value, str):
                    values[change.key] = change.value
            elif change.target in ("label", "rating", "pruned_at"):
                node = self._nodes[change.key]
                self._nodes[change.key] = node.with_flag(change.target, change.value)


def _attached(node_id: str, names: Sequence[str]) -> Assignment:
    return Assignment("sources", node_id, json.dumps(list(names), ensure_ascii=False))
