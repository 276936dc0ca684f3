"""`TreeSession`: the interface of front ends to conversations: open, send, stop, regenerate, pump.

Used by one thread. No call waits for an engine step; disk writes are queued. The front end calls `pump`
periodically: it moves tokens from the engine's mailboxes into the conversations and the store, including
those of conversations that are not open.
"""

import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from engine.api.errors import InvalidRequest
from engine.api.generation_defaults import SamplingChoice
from engine.api.request import SamplingParams
from engine.clients.engine_client import EngineClient
from engine.conversations.answering import Answering
from engine.conversations.conversation import Conversation
from engine.conversations.errors import ConversationChanged
from engine.conversations.export import export_jsonl
from engine.conversations.oplog import Assignment
from engine.conversations.store import Store
from engine.conversations.titles import UNTITLED, title_of
from engine.conversations.tree import (
    Node,
    NodeDelta,
    NodeKind,
    NodeStatus,
    NodeView,
    TreeSummary,
)
from engine.conversations.ulid import new_ulid

_HISTORY = 500

DEFAULT_SAMPLING = SamplingChoice(SamplingParams(temperature=0.2, top_p=0.9, logprobs=0))
"""A low temperature, for small models; the logprobs of sampled tokens are stored with every answer."""


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
        sampling: sampling parameters of answers.
        system_prompt: system prompt of new conversations.
        system_required: whether the user set the system prompt; if not, it is omitted for chat
            templates that do not support one.
        resume: open the last conversation instead of an empty one.
        stop_repetition: stop answers that repeat themselves without end.

    Attributes:
        sampling: sampling parameters of the next answers.
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
    ) -> None:
        self.sampling = sampling
        self._store = store
        self._new_id = new_id
        self._default_system_prompt = system_prompt
        self._system_required = system_required
        self._answering = Answering(
            store,
            client,
            clock=clock,
            wall=wall,
            new_id=new_id,
            stop_repetition=stop_repetition,
        )
        # Conversations that were written to, until all is on disk: the store may not have them yet.
        self._written: dict[str, Conversation] = {}
        self._history: deque[str] = deque(store.prompts(_HISTORY), maxlen=_HISTORY)
        newest = store.trees()[:1] if resume else []
        self._current = self._load(newest[0].id) if newest else self._empty()

    # Conversations.

    @property
    def tree_id(self) -> str:
        """The id of the open conversation."""
        return self._current.id

    @property
    def title(self) -> str:
        """The open conversation's title."""
        return self._current.title

    def trees(self, query: str = "") -> list[TreeSummary]:
        """Saved conversations, newest first; with a query, those that contain it. Waits for queued writes."""
        self._store.wait_for_writes()
        self._forget_saved()
        trees = self._store.trees(query)
        listed = {tree.id for tree in trees}
        unlisted = [
            conversation.summary()
            for conversation in self._written.values()
            if conversation.id not in listed and conversation.contains(query.strip())
        ]
        return sorted([*unlisted, *trees], key=lambda tree: tree.updated_at, reverse=True)

    def new_tree(self) -> str:
        """Open an empty conversation; returns its id. A running answer continues in the background."""
        self._current = self._empty()
        return self._current.id

    def open_tree(self, tree_id: str) -> None:
        """Open another conversation. A running answer continues in the background.

        Raises:
            InvalidRequest: there is no such conversation.
        """
        if tree_id != self._current.id or self._current.saved:
            self._forget_saved()
            self._current = self._unsaved(tree_id) or self._load(tree_id)

    def rename_tree(self, tree_id: str, title: str) -> None:
        """Rename a conversation; can be undone."""
        title = title_of(title)
        conversation = self._loaded(tree_id)
        if conversation is not None:
            conversation.title = title
        if conversation is None or conversation.saved:
            self._store.assign(tree_id, "rename", [Assignment("title", "", title)])

    def delete_tree(self, tree_id: str) -> None:
        """Archive a conversation: it is no longer listed, its nodes are kept. Stops its answer."""
        conversation = self._loaded(tree_id)
        if conversation is not None:
            conversation.queued.clear()
            self._answering.stop(conversation)
        if conversation is None or conversation.saved:
            self._store.assign(tree_id, "archive", [Assignment("archived", "", 1)])
        self._written.pop(tree_id, None)
        if tree_id == self._current.id:
            self.new_tree()

    def export(self) -> Iterator[str]:
        """The saved nodes of the open conversation as JSON Lines, all branches included.

        Raises:
            StoreError: messages cannot be saved at present.
        """
        self._store.flush()
        return export_jsonl(self._store, self._current.id)

    def path(self) -> list[NodeView]:
        """The messages of the open conversation, from root to head."""
        return self._current.path()

    def context_used(self) -> int:
        """Tokens of the open conversation's last prompt and answer; 0 before the first answer."""
        return self._current.context_used()

    def prompt_history(self) -> list[str]:
        """The latest user messages of all conversations, oldest first, without consecutive duplicates."""
        history = list(self._history)
        return [text for i, text in enumerate(history) if i == 0 or text != history[i - 1]]

    @property
    def system_prompt(self) -> str | None:
        """The system prompt of the open conversation's next message."""
        return self._current.system_prompt

    @system_prompt.setter
    def system_prompt(self, text: str | None) -> None:
        self._current.system_prompt = text or None
        self._current.system_optional = False

    # Answers.

    @property
    def generating(self) -> bool:
        """Whether the open conversation has a running answer."""
        return self._current.answer is not None

    @property
    def request_id(self) -> str | None:
        """The request id of the open conversation's running answer, or None."""
        answer = self._current.answer
        return None if answer is None else answer.request_id

    @property
    def queued(self) -> tuple[str, ...]:
        """Messages to send after the running answer, oldest first."""
        return tuple(self._current.queued)

    def withdraw(self) -> str | None:
        """Remove and return the newest queued message; None if there is none."""
        return self._current.queued.pop() if self._current.queued else None

    def send(self, text: str) -> None:
        """Send a message, or queue it while an answer is running.

        Raises:
            InvalidRequest: the message is empty, the conversation exceeds the context length, or another
                process is answering in it; nothing was added.
            ConversationChanged: another process has added to the conversation; nothing was added.
            QueueFull, EngineUnavailable: the engine accepts no requests; nothing was added.
        """
        if not text.strip():
            raise InvalidRequest("The message is empty: type something to send.")
        if self._current.answer is not None:
            self._current.queued.append(text)
        else:
            with self._writing(self._current) as conversation:
                self._answering.ask(conversation, text, self.sampling)
        self._history.append(text)

    def stop(self) -> None:
        """Stop the running answer at the next step boundary; its text is kept."""
        self._answering.stop(self._current)

    def regenerate(self) -> None:
        """Generate the last answer again, as a sibling with the next seed.

        Raises:
            InvalidRequest: an answer is running, or there is no message to answer.
            QueueFull, EngineUnavailable: the engine accepts no requests; nothing was added.
        """
        with self._writing(self._current) as conversation:
            path, sampling = list(conversation.nodes), self.sampling
            if path and path[-1].kind is NodeKind.ASSISTANT:
                sampling = _next_seed(sampling, path.pop())
            if not path or path[-1].kind is not NodeKind.USER:
                raise InvalidRequest("There is no answer to regenerate: send a message first.")
            self._answering.answer_again(conversation, path, sampling)

    def undo(self) -> str | None:
        """Undo the last operation in the open conversation; returns its name, or None.

        Raises:
            InvalidRequest: an answer is running.
        """
        return self._replay(self._store.undo)

    def redo(self) -> str | None:
        """Redo the operation undone last; returns its name, or None.

        Raises:
            InvalidRequest: an answer is running.
        """
        return self._replay(self._store.redo)

    def pump(self) -> list[NodeDelta]:
        """Drain the engine's output; returns the changes. Called periodically by the front end.

        Costs microseconds without new output. A delta of an unknown node means that the path changed:
        read `path` again.
        """
        return self._answering.pump()

    def take_notice(self) -> str | None:
        """A sentence for the user about the store (damage, failed writes), returned once; else None."""
        return self._store.take_notice()

    @property
    def unsaved(self) -> str | None:
        """Why messages cannot be saved at present (a full disk), or None. They are kept in memory."""
        return self._store.unsaved

    @property
    def saving(self) -> bool:
        """Whether something is not on disk yet."""
        return self._store.saving

    def close(self) -> None:
        """Stop all answers, save their text, and wait until it is on disk. Idempotent.

        Raises:
            StoreError: a queued write failed.
        """
        self._answering.close()
        self._store.flush()

    # Internal: conversations.

    def _empty(self) -> Conversation:
        return Conversation(
            id=self._new_id(),
            title=UNTITLED,
            system_prompt=self._default_system_prompt,
            system_optional=not self._system_required,
        )

    def _load(self, tree_id: str) -> Conversation:
        self._store.wait_for_writes()
        summary = self._store.tree(tree_id)
        if summary is None:
            raise InvalidRequest(f"There is no conversation {tree_id}.")
        conversation = Conversation(tree_id, summary.title, None, saved=True)
        self._read_path(conversation)
        return conversation

    def _read_path(self, conversation: Conversation) -> None:
        head = self._store.head(conversation.id)
        conversation.nodes = self._store.path(head) if head else []
        conversation.system_prompt = (
            conversation.sent_system_prompt() if head else self._default_system_prompt
        )

    def _loaded(self, tree_id: str) -> Conversation | None:
        return self._current if tree_id == self._current.id else self._unsaved(tree_id)

    def _unsaved(self, tree_id: str) -> Conversation | None:
        """The conversation, if more of it is in memory than on disk."""
        return self._written.get(tree_id) or self._answering.running(tree_id)

    def _replay(self, replay: Callable[[str], str | None]) -> str | None:
        with self._writing(self._current) as conversation:
            name = replay(conversation.id)
            if name is not None:
                self._current = self._load(conversation.id)
        return name

    @contextmanager
    def _writing(self, conversation: Conversation) -> Iterator[Conversation]:
        """The right to add to the conversation; kept while an answer runs, otherwise given back.

        Raises:
            InvalidRequest: an answer is running, here or in another process.
            ConversationChanged: another process has added to it.
        """
        if conversation.answer is not None:
            raise InvalidRequest("An answer is running: stop it first.")
        claim = self._store.claim(conversation.id)
        if claim == "elsewhere":
            raise InvalidRequest(
                "Another Pravāha process is generating this conversation's answer: wait until it "
                "has finished."
            )
        try:
            if claim == "new" and conversation.saved:
                self._reload_if_changed(conversation)
            self._written[conversation.id] = conversation
            yield conversation
        finally:
            if conversation.answer is None:
                self._store.release(conversation.id)

    def _reload_if_changed(self, conversation: Conversation) -> None:
        """Load the conversation again if another process has added to it, and raise."""
        last = conversation.nodes[-1] if conversation.nodes else None
        head = self._store.head(conversation.id)
        known = None if last is None else last.id
        if head == known and (last is None or last.status is not NodeStatus.STREAMING):
            return
        self._store.stop_orphans()  # nobody else writes to it: a streaming answer was interrupted
        self._store.wait_for_writes()
        self._read_path(conversation)
        raise ConversationChanged(
            "This conversation was continued in another Pravāha process: its new messages were "
            "loaded. Send yours again if it still fits."
        )

    def _forget_saved(self) -> None:
        """Forget the conversations whose messages are all on disk."""
        if not self._store.saving:
            self._written = {
                tree_id: conversation
                for tree_id, conversation in self._written.items()
                if conversation.answer is not None
            }


def _next_seed(sampling: SamplingChoice, last: Node) -> SamplingChoice:
    """The parameters with the seed after the last answer's: the same seed would repeat the answer."""
    seed = sampling.params.seed
    if seed is None:
        return sampling
    following = ((seed if last.seed is None else last.seed) + 1) % 2**64
    return replace(sampling, params=replace(sampling.params, seed=following))
