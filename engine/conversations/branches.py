"""`Branches`: operations on the tree of the open conversation, such as fork, edit, expand and prune.

Nodes never change: an edited message is a new sibling, and an answer that is generated again too. What
moves is pointers and flags, each change an entry in the oplog that `Operations.undo` reverts. Forks continue
from stored token ids, so that the engine finds their KV in its prefix cache. `Merging` joins branches.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from engine.api.errors import InvalidRequest
from engine.api.generation_defaults import SamplingChoice
from engine.conversations.answer import Answer
from engine.conversations.answering import Answering, with_next_seed
from engine.conversations.assignment import Assignment
from engine.conversations.branch_tree import FORK, MAIN
from engine.conversations.chosen_sampling import ChosenSampling
from engine.conversations.loaded_conversations import LoadedConversations
from engine.conversations.new_nodes import NewNodes
from engine.conversations.open_nodes import OpenNodes
from engine.conversations.storage.store import Store
from engine.conversations.tokens import Tokens
from engine.conversations.tree import NodeKind

MAX_EXPANSION = 9
"""Most answers that are generated side by side."""


class Branches:
    """Operations on the tree of the open conversation. Used by the session's thread.

    Args:
        store: where nodes and pointers are saved.
        loaded: the conversations in memory.
        answering: runs the answers.
        new_nodes: adds nodes.
        nodes: the messages of the open conversation.
        tokens: the tokens of its answers.
        sampling: the sampling parameters of the next answer.
        check_input: what is stored of a text of the user; see `TextGuard.check_input`.
        wall: seconds since the epoch, for `pruned_at`.
    """

    def __init__(
        self,
        store: Store,
        loaded: LoadedConversations,
        answering: Answering,
        new_nodes: NewNodes,
        nodes: OpenNodes,
        tokens: Tokens,
        sampling: ChosenSampling,
        *,
        check_input: Callable[[str], str],
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._store = store
        self._loaded = loaded
        self._answering = answering
        self._new_nodes = new_nodes
        self._nodes = nodes
        self._tokens = tokens
        self._sampling = sampling
        self._check_input = check_input
        self._wall = wall

    # Going to a node.

    def adopt(self, node_id: str) -> None:
        """Open the branch of a node: HEAD moves to the leaf that its current children lead to.

        Consecutive moves are undone together.

        Raises:
            InvalidRequest: no such node, or another process is answering in the conversation.
        """
        tree = self._loaded.current.tree
        self._nodes.view_of(node_id)
        self._move(tree.leaf(node_id) or node_id)

    def rewind(self, node_id: str) -> None:
        """Move HEAD to this node, not to the end of its branch: the next message goes after it."""
        self._nodes.view_of(node_id)
        self._move(node_id)

    # New branches.

    def fork(self, node_id: str, *, model: str | None = None) -> str:
        """Begin a branch after a node; returns its name. After a user message its answer begins.

        Args:
            node_id: the node.
            model: the one of several models that answers the branch; None takes that of the open branch after
                a user message, and goes on with that of the node after another.

        Raises:
            InvalidRequest: no such node, or its answer is running.
            PravahaError: as `regenerate`.
        """
        conversation = self._loaded.current
        node = self._nodes.finished(node_id)
        name = conversation.tree.fresh_name(FORK)
        if node.kind is NodeKind.USER:
            with self._loaded.writing():
                path = self._nodes.path_to(node_id)
                self._answering.begin(
                    conversation, path, [], self._sampling.current, "fork", branch=name,
                    model=model or self._open_model,
                )  # fmt: skip
            return name
        changes = [Assignment("head", name, node_id)]
        if model is not None:
            changes.append(Assignment("model", node_id, model))
        self._move(node_id, changes, "fork")
        return name

    def fork_at_token(self, node_id: str, at: int, *, forced: int | None = None) -> str:
        """Begin another answer with the first `at` tokens of this one; returns the new node's id.

        Args:
            node_id: an answer of a loaded model, which goes on with it.
            at: number of tokens to keep, from 0.
            forced: a token that follows them.

        Raises:
            InvalidRequest: not an answer with tokens of the loaded model, or no such token.
            QueueFull, EngineUnavailable: the engine accepts no requests; nothing was added.
        """
        name = self._loaded.current.tree.fresh_name(FORK)
        (answer,) = self._begin_at_token(node_id, at, "fork", forced=forced, branch=name)
        return answer.node_id

    def expand_at_token(self, node_id: str, at: int, count: int) -> list[str]:
        """Begin `count` answers side by side with the first `at` tokens of this one; the ids of their nodes.

        They are decoded from one prefill. Args and raises: as `fork_at_token` and `expand`.
        """
        _check_count(count)
        return [one.node_id for one in self._begin_at_token(node_id, at, "expand", count=count)]

    def _begin_at_token(
        self,
        node_id: str,
        at: int,
        operation: str,
        *,
        forced: int | None = None,
        count: int = 1,
        branch: str | None = None,
    ) -> list[Answer]:
        conversation = self._loaded.current
        tokens = self._tokens.of(node_id)
        if not 0 <= at <= len(tokens.token_ids) or (at == len(tokens.token_ids) and not forced):
            raise InvalidRequest(
                f"The answer has {len(tokens.token_ids)} tokens; there is no {at}."
            )
        beginning = self._tokens.beginning(tokens, at, forced)
        with self._loaded.writing():
            path = self._nodes.path_to(node_id)
            sampling = with_next_seed(self._sampling.current, 1, conversation.tree[node_id].seed)
            return self._answering.begin(
                conversation, path[:-1], [], sampling, operation,
                beginning=beginning, branch=branch, count=count,
                model=self._answering.model_of(conversation, path),  # whose tokens it begins with
            )  # fmt: skip

    def edit(self, node_id: str, text: str) -> str:
        """Add a changed message as a sibling and open it; the id. A user message is answered anew.

        It keeps its images.

        Raises:
            InvalidRequest: the text is empty or the same, or the answer is running.
            PravahaError: as `regenerate`.
        """
        conversation = self._loaded.current
        node = self._nodes.finished(node_id)
        if not text.strip():
            raise InvalidRequest("The message is empty: type something, or prune it.")
        text = self._check_input(text)
        with self._loaded.writing():
            path = self._nodes.path_to(node_id)[:-1]
            parent = path[-1] if path else None
            images = self._nodes.full(node_id).images
            changed = self._new_nodes.make(conversation, parent, node.kind, text, images=images)
            if node.kind is NodeKind.USER:
                self._answering.begin(
                    conversation, path, [changed], self._sampling.current, "edit",
                    model=self._open_model,
                )  # fmt: skip
            else:
                changed = replace(changed, forked_from=node_id)
                self._new_nodes.add(conversation, path, [changed], "edit", end=changed)
        return changed.id

    def ask_anyway(self, node_id: str | None = None) -> str:
        """Ask a message again for which no passage seemed good enough, and have it answered all the same.

        It is added as a sibling, since what the model has read for the other one stays with it; its id.

        Args:
            node_id: the message, or its answer; None takes the end of the open path.

        Raises:
            InvalidRequest: it has other passages or none were sought, or the answer is running.
            PravahaError: as `regenerate`.
        """
        conversation = self._loaded.current
        node_id = node_id or conversation.head
        path = [] if node_id is None else self._nodes.path_to(node_id)
        if path and path[-1].kind is NodeKind.ASSISTANT:
            self._nodes.finished(path.pop().id)
        if not path or path[-1].kind is not NodeKind.USER or path[-1].n_passages != 0:
            raise InvalidRequest(
                "Only a message that the attached documents do not answer is asked again."
            )
        message = self._nodes.full(path.pop().id)
        with self._loaded.writing():
            again = self._new_nodes.make(
                conversation,
                path[-1] if path else None,
                NodeKind.USER,
                message.text,
                images=message.images,
            )
            self._answering.begin(
                conversation, path, [again], self._sampling.current, "answer anyway", anyway=True,
                model=self._open_model,
            )  # fmt: skip
        return again.id

    def regenerate(
        self,
        node_id: str | None = None,
        *,
        sampling: SamplingChoice | None = None,
        model: str | None = None,
    ) -> str:
        """Generate an answer again, as a sibling with the next seed; returns its node's id.

        Args:
            node_id: the answer, or the user message to answer; None takes the end of the open path.
            sampling: other sampling parameters.
            model: the one of several models that answers, here and in what follows; None takes that of the
                answer.

        Raises:
            InvalidRequest: there is no message to answer, or its last answer is still running.
            QueueFull, EngineUnavailable: the engine accepts no requests; nothing was added.
        """
        return self.expand(1, node_id, sampling=sampling, operation="regenerate", model=model)[0]

    def expand(
        self,
        count: int,
        node_id: str | None = None,
        *,
        sampling: SamplingChoice | None = None,
        operation: str = "expand",
        model: str | None = None,
    ) -> list[str]:
        """Generate `count` answers side by side, siblings from one prefill; the ids of their nodes.

        Args and raises: as `regenerate`; `count` is from 1 to `MAX_EXPANSION`.
        """
        conversation = self._loaded.current
        _check_count(count)
        node_id = node_id or conversation.head
        if node_id is not None and node_id in conversation.answers and count == 1:
            raise InvalidRequest("An answer is running: stop it first.")
        if node_id is None or self._nodes.view_of(node_id).kind not in _ANSWERABLE:
            raise InvalidRequest("Nothing to regenerate: send a message first.")
        chosen = sampling or self._sampling.current
        with self._loaded.writing():
            path = self._nodes.path_to(node_id)
            if path[-1].kind is NodeKind.ASSISTANT:
                model = model or self._answering.model_after(conversation, path)
                chosen = with_next_seed(chosen, 1, conversation.view(path.pop().id).seed)
            if not path or path[-1].kind is not NodeKind.USER:
                raise InvalidRequest("Nothing to regenerate: send a message first.")
            answers = self._answering.begin(
                conversation, path, [], chosen, operation, count=count, model=model
            )
        return [answer.node_id for answer in answers]

    # Changes of the tree.

    def prune(self, node_id: str) -> int:
        """Hide a node and all below it; returns how many. `undo` brings them back. Stops their answers.

        HEAD, if it is among them, moves to the branch beside them, else to their parent.

        Raises:
            InvalidRequest: no such node, or it is the whole conversation.
        """
        conversation = self._loaded.current
        tree = conversation.tree
        node = self._nodes.view_of(node_id)
        if tree.siblings(node_id) == [node_id] and node.parent_id is None:
            raise InvalidRequest("This is the whole conversation: /delete archives it.")
        doomed = list(tree.subtree(node_id))
        now = self._wall()
        changes = [Assignment("pruned_at", one, now) for one in doomed]
        with self._loaded.writing():
            for one in doomed:
                conversation.queues.pop(one, None)
                self._answering.stop(conversation, one)
            moved = conversation.head in doomed
            tree.apply(changes)  # now the parent's leaf is outside
            if moved:
                target = tree.leaf(node.parent_id) or node.parent_id
                moves = [] if target is None else tree.moves_to(target)
                tree.apply(moves)
                changes += moves
                conversation.nodes = self._nodes.path_to(target)
            self._store.operations.assign(conversation.id, "prune", changes)
            conversation.version += 1
        return len(doomed)

    def promote(self, node_id: str) -> None:
        """Make a node's branch the main one: current at every fork, and named `main`."""
        conversation = self._loaded.current
        self._nodes.view_of(node_id)
        tree = conversation.tree
        leaf = tree.leaf(node_id) or node_id
        changes: list[Assignment] = []
        old = tree.branches().get(MAIN)
        name = tree.branch_at(leaf)
        if old is not None and old != leaf:
            changes.append(Assignment("head", tree.fresh_name(f"old-{MAIN}"), old))
        if name is not None and name != MAIN:
            changes.append(Assignment("head", name, None))
        changes.append(Assignment("head", MAIN, leaf))
        self._move(leaf, changes, "promote")

    def label(self, node_id: str, text: str) -> None:
        """Set or (empty) remove a node's label."""
        self._flag(node_id, "label", " ".join(text.split()) or None)

    def rate(self, node_id: str, rating: int | None) -> None:
        """Bookmark a node (1), or remove its bookmark (None)."""
        self._flag(node_id, "rating", rating)

    def rename_branch(self, name: str) -> None:
        """Name the branch that the conversation is open at.

        Raises:
            InvalidRequest: the name is in use or empty, or the conversation is.
        """
        conversation = self._loaded.current
        tree, name = conversation.tree, " ".join(name.split())
        if not name or name.upper() == "HEAD":
            raise InvalidRequest("A branch needs a name.")
        if name in tree.branches():
            raise InvalidRequest(f"There is a branch {name} already.")
        if conversation.head is None:
            raise InvalidRequest("The conversation is empty: send a message first.")
        old = tree.branch_at(conversation.head)
        changes = [Assignment("head", old, None)] if old is not None else []
        self._assign([*changes, Assignment("head", name, conversation.head)], "rename branch")

    # Internal.

    @property
    def _open_model(self) -> str | None:
        """The one of several models that goes on with the open branch; None for the primary one."""
        conversation = self._loaded.current
        return self._answering.model_after(conversation, conversation.nodes)

    def _move(
        self, node_id: str, changes: Sequence[Assignment] = (), operation: str = "go to"
    ) -> None:
        """Open the conversation at a node; undone together with other moves unless there are `changes`."""
        conversation = self._loaded.current
        path = self._nodes.path_to(node_id)
        moves = [*conversation.tree.moves_to(node_id), *changes]
        if not moves:
            return
        with self._loaded.writing():
            self._store.operations.assign(conversation.id, operation, moves, joined=not changes)
            conversation.tree.apply(moves)
            conversation.nodes = path
            conversation.version += 1

    def _assign(self, changes: Sequence[Assignment], operation: str) -> None:
        conversation = self._loaded.current
        with self._loaded.writing():
            self._store.operations.assign(conversation.id, operation, changes)
            conversation.tree.apply(changes)
            conversation.version += 1

    def _flag(self, node_id: str, name: str, value: str | int | None) -> None:
        self._nodes.view_of(node_id)
        self._assign([Assignment(name, node_id, value)], name)  # type: ignore[arg-type]


_ANSWERABLE = (NodeKind.USER, NodeKind.ASSISTANT)


def _check_count(count: int) -> None:
    if not 1 <= count <= MAX_EXPANSION:
        raise InvalidRequest(f"From 1 to {MAX_EXPANSION} answers can be generated side by side.")
