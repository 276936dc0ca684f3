"""`TreeSession`: the open conversation as front ends see it, and the objects that work on it.

```
TreeSession ─┬─ conversations                  the list: find, open, rename, archive, erase
             ├─ messages, answers, sampling    send and stop; how the next answer is sampled
             ├─ branches, merging, operations  fork, edit, prune; merge; undo and redo
             ├─ sources, context, tokens       what prompts are made of, and what they cost
             └─ following, writes              other processes; what is not on disk yet
```

They share `LoadedConversations`, which owns the state, and `Answering`, which runs the answers.

Used by one thread. No call waits for an engine step; disk writes are queued. The front end calls `pump`
periodically: it moves tokens from the engine's mailboxes into the conversations and the store, including
those of conversations that are not open.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from engine.api.generation_defaults import SamplingChoice
from engine.api.request import SamplingParams
from engine.clients.engine_client import EngineClient
from engine.clients.model_set import ModelSet
from engine.conversations.answering import Answered, Answering
from engine.conversations.attached_sources import AttachedSources
from engine.conversations.branch_tree import BranchTree
from engine.conversations.branches import Branches
from engine.conversations.chat_tools import ToolSource
from engine.conversations.chosen_model import ChosenModel
from engine.conversations.chosen_sampling import ChosenSampling
from engine.conversations.context_window import ContextWindow
from engine.conversations.conversation_list import ConversationList
from engine.conversations.drafts import Drafts
from engine.conversations.export import export_jsonl
from engine.conversations.following import Following
from engine.conversations.loaded_conversations import LoadedConversations
from engine.conversations.merging import Merging
from engine.conversations.new_nodes import NewNodes
from engine.conversations.open_nodes import OpenNodes
from engine.conversations.operations import Operations
from engine.conversations.passage_source import PassageSource
from engine.conversations.running_answers import RunningAnswers
from engine.conversations.storage.store import Store
from engine.conversations.summaries import Summaries
from engine.conversations.text_guard import NoGuard, TextGuard
from engine.conversations.tokens import Tokens
from engine.conversations.tree import NodeDelta, NodeView
from engine.conversations.tree_contents import TreeContents
from engine.conversations.ulid import new_ulid
from engine.conversations.user_messages import UserMessages

DEFAULT_SAMPLING = SamplingChoice(SamplingParams(temperature=0.2, top_p=0.9))
"""A low temperature, for small models."""


class TreeSession:
    """The conversations of one store, answered by one engine.

    Opens the conversation that was used last, or an empty one. An empty conversation is saved with its
    first message.

    Args:
        store: owned by the caller, who closes it after the session.
        client: owned by the caller.
        clock: monotonic seconds; limits the rate of saves.
        wall: seconds since the epoch, for `created_at` of nodes.
        new_id: returns increasing ids.
        sampling: sampling parameters of branches that set none.
        system_prompt: system prompt of new conversations.
        system_required: whether the user set the system prompt; if not, it is omitted for chat
            templates that do not support one.
        resume: open the last conversation instead of an empty one.
        stop_repetition: stop answers that repeat themselves without end.
        guard: checks messages before they are stored, and texts before they are shown; None lets everything
            pass.
        passages: finds the passages of messages on branches with sources; None if there is no source.
        tools: opens the tools that answers may call; None if there are none.
        background: submit on a thread of its own, for a client whose `submit` waits for a network: `send`
            and the operations of `branches` return at once, and a refusal by the engine ends the answer.
        models: the models that branches may choose between; None if there is one engine. `client` then asks
            the model that `model` names.
        on_answered: called after each answer whose prompt was read.

    Attributes:
        conversations: the list of conversations.
        messages: what the user writes: sent, queued, unsent.
        answers: the answers in generation.
        sampling: the sampling parameters of the next answer.
        model: the one of several models that answers the open branch.
        branches: operations on the tree of the open conversation.
        merging: joins its branches.
        operations: undo and redo.
        nodes: its messages with their token data.
        tokens: the tokens of its answers and prompts.
        context: what fits into the context of the model.
        sources: the collections that it is answered from.
        following: what other processes add.
        writes: what is not on disk yet.
    """

    def __init__(
        self,
        store: Store,
        client: EngineClient,
        *,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
        new_id: Callable[[], str] = new_ulid,
        sampling: SamplingChoice = DEFAULT_SAMPLING,
        system_prompt: str | None = None,
        system_required: bool = True,
        resume: bool = True,
        stop_repetition: bool = True,
        background: bool = False,
        guard: TextGuard | None = None,
        passages: PassageSource | None = None,
        tools: ToolSource | None = None,
        models: ModelSet | None = None,
        on_answered: Answered | None = None,
    ) -> None:
        self._guard: TextGuard = NoGuard() if guard is None else guard
        self._store = store
        new_nodes = NewNodes(store, wall=wall, new_id=new_id)
        self._answering = Answering(
            store,
            client,
            new_nodes,
            clock=clock,
            stop_repetition=stop_repetition,
            background=background,
            guard=self._guard,
            passages=passages,
            tools=tools,
            models=models,
            on_answered=on_answered,
        )
        self._loaded = loaded = LoadedConversations(
            store,
            self._answering,
            new_id=new_id,
            system_prompt=system_prompt,
            system_required=system_required,
        )
        drafts = Drafts(store)
        self.conversations = ConversationList(
            store, loaded, self._answering, drafts, self._guard, new_id=new_id
        )
        self.answers = RunningAnswers(loaded, self._answering)
        self.sampling = ChosenSampling(loaded, sampling)
        self.model = ChosenModel(store, loaded, self._answering, models)
        self.messages = UserMessages(
            store, loaded, self._answering, new_nodes, drafts, self.sampling, self._guard
        )
        self.operations = Operations(store, loaded)
        self.nodes = OpenNodes(store, loaded)
        self.tokens = Tokens(loaded, self._answering, self.nodes)
        self.sources = AttachedSources(store, loaded, self.nodes)
        self.following = Following(store, loaded, self._guard)
        self.writes = store.writes
        summaries = Summaries(client, loaded, self._answering, new_nodes, self.sampling)
        self.context = ContextWindow(
            loaded, client, self._answering, new_nodes, summaries, check_input=self._check_input
        )
        self.branches = Branches(
            store, loaded, self._answering, new_nodes, self.nodes, self.tokens, self.sampling,
            check_input=self._check_input,
        )  # fmt: skip
        self.merging = Merging(loaded, new_nodes, self.nodes, self.tokens, summaries)
        if resume:
            self.conversations.open_last_used()
        else:
            loaded.open_empty()

    # The open conversation.

    @property
    def tree_id(self) -> str:
        """The id of the open conversation."""
        return self._loaded.current.id

    @property
    def title(self) -> str:
        """The open conversation's title."""
        return self._loaded.current.title

    @property
    def tree(self) -> BranchTree:
        """All branches of the open conversation; not to be changed by the caller."""
        return self._loaded.current.tree

    @property
    def version(self) -> tuple[str, int]:
        """Differs after every change of the open conversation other than new text of its answers."""
        return self._loaded.current.id, self._loaded.current.version

    @property
    def head(self) -> str | None:
        """The id of the last node of the open path; None if the conversation is empty."""
        return self._loaded.current.head

    def path(self) -> list[NodeView]:
        """The messages of the open conversation, from root to head, as they are shown."""
        return [self.view(node.id) for node in self._loaded.current.nodes]

    def view(self, node_id: str) -> NodeView:
        """A node of any branch of the open conversation as it is shown, including the text so far."""
        view = self._loaded.current.view(node_id)
        if node_id in self._loaded.current.answers:  # it was checked while it was generated
            return view
        if view.checked_text is not None:
            view = replace(view, text=view.checked_text)
        return self._guard.shown(self._loaded.current.id, view)

    def on_path(self, node_id: str) -> bool:
        """Whether a node with new output is on the open path: such a node is among the last ones."""
        return any(node.id == node_id for node in self._loaded.current.nodes[-4:])

    @property
    def system_prompt(self) -> str | None:
        """The system prompt of the open conversation's next message."""
        return self._loaded.current.system_prompt

    @system_prompt.setter
    def system_prompt(self, text: str | None) -> None:
        self._loaded.current.system_prompt = text or None
        self._loaded.current.system_optional = False

    def export(self) -> Iterator[str]:
        """The saved nodes of the open conversation as JSON Lines, all branches included.

        Raises:
            StoreError: messages cannot be saved at present.
        """
        self._store.writes.flush()
        return export_jsonl(self._store, self._loaded.current.id)

    def contents(self) -> TreeContents | None:
        """The saved part of the open conversation, with all branches; None if nothing is saved yet.

        Raises:
            StoreError: messages cannot be saved at present.
        """
        self._store.writes.flush()
        return self._store.trees.contents(self._loaded.current.id)

    def pump(self) -> list[NodeDelta]:
        """Drain the engine's output; returns the changes, those of `following` too. Called periodically.

        Costs microseconds without new output. A delta of an unknown node means that the path changed:
        read `path` again.
        """
        deltas = [*self.following.take(), *self._answering.pump()]
        self.messages.keep_queued()
        return deltas

    def close(self) -> None:
        """Stop all answers, save their text, and wait until it is on disk. Idempotent.

        Raises:
            StoreError: a queued write failed.
        """
        self.messages.close()
        self._answering.close()
        self._store.writes.flush()

    def _check_input(self, text: str) -> str:
        """What is stored of a text of the open conversation."""
        return self._guard.check_input(self._loaded.current.id, text)
