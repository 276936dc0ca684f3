"""`UserMessages`: what the user writes in the open conversation: sent, queued after an answer, or unsent."""

import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from engine.api.errors import InvalidRequest
from engine.api.image import Image
from engine.api.request import FinishReason
from engine.conversations.answering import Answering
from engine.conversations.chosen_sampling import ChosenSampling
from engine.conversations.drafts import Drafts
from engine.conversations.loaded_conversations import LoadedConversations
from engine.conversations.new_nodes import NewNodes
from engine.conversations.storage.store import Store
from engine.conversations.text_guard import TextGuard
from engine.conversations.tree import NodeStatus, Verdict

_HISTORY = 500
"""Number of earlier messages and commands that `history` returns."""


class UserMessages:
    """The user's messages of one session. Used by its thread.

    Args:
        store: where they are saved.
        loaded: the conversations in memory.
        answering: runs the answers.
        new_nodes: adds nodes.
        drafts: the unsent texts and queued messages.
        sampling: the sampling parameters of the next answer.
        guard: admits messages, and shows them as they were written.
        wall: seconds since the epoch.
    """

    def __init__(
        self,
        store: Store,
        loaded: LoadedConversations,
        answering: Answering,
        new_nodes: NewNodes,
        drafts: Drafts,
        sampling: ChosenSampling,
        guard: TextGuard,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._wall = wall
        self._store = store
        self._loaded = loaded
        self._answering = answering
        self._new_nodes = new_nodes
        self._drafts = drafts
        self._sampling = sampling
        self._guard = guard
        self._history: deque[str] = deque(store.prompts.latest(_HISTORY), maxlen=_HISTORY)
        self._awaited: dict[str, str] = {}  # the conversation of each answer that an agent writes
        self._closed = False

    def send(self, text: str, *, images: Sequence[Image] = ()) -> None:
        """Send a message, or queue it while an answer is running.

        Args:
            text: the message; may be empty beside images.
            images: its images, for a model that sees images. Such a message cannot be queued.

        Raises:
            InvalidRequest: the message is empty or refused by the guard, the conversation exceeds the
                context length, the model does not take its images, or another process is answering in
                it; nothing was added.
            ConversationChanged: another process has added to the conversation; nothing was added.
            QueueFull, EngineUnavailable: the engine accepts no requests; nothing was added.
        """
        current = self._loaded.current
        if not text.strip() and not images:
            raise InvalidRequest("The message is empty: type something to send.")
        if images and (current.answer is not None or current.queued):
            raise InvalidRequest(
                "A message with images cannot wait for an answer: send it when none is running."
            )
        written, text = text, self._guard.check_input(current.id, text)
        if current.answer is not None:
            current.queue(text)
        else:
            with self._loaded.writing() as conversation:
                # Messages queued before the last start come first.
                answered, waiting = conversation.head or "", [*conversation.queued, text]
                self._answering.ask(
                    conversation, conversation.nodes, waiting[0], self._sampling.current,
                    images=images,
                )  # fmt: skip
                conversation.queues.pop(answered, None)
                for later in waiting[1:]:
                    conversation.queue(later)
        self.keep_queued()
        if written.strip():
            self._history.append(written)

    def begin_exchange(self, question: str, *, by: str) -> str:
        """Add a message and the place of an answer that an agent will write, after HEAD; the answer's id.

        Messages that are sent meanwhile follow that place.

        Args:
            question: the user's message.
            by: who writes the answer, shown in place of a model's name.

        Raises:
            InvalidRequest: an answer is running, or another process answers in the conversation.
            ConversationChanged: another process has added to the conversation; nothing was added.
        """
        current = self._loaded.current
        if current.answers:
            raise InvalidRequest("An answer is running: wait until it has finished.")
        question = self._guard.check_input(current.id, question)
        with self._loaded.writing() as conversation:
            node_id = self._new_nodes.begin_exchange(conversation, question, by=by)
        self._awaited[node_id] = current.id
        return node_id

    def finish_exchange(
        self,
        node_id: str,
        answer: str,
        *,
        verdict: Verdict | None = None,
        others: Sequence[tuple[str, Verdict | None]] = (),
    ) -> None:
        """Save the answer of `begin_exchange`, whichever conversation is open.

        Args:
            answer: as Markdown.
            verdict: what tests say about it; None if none were run.
            others: answers that were written, too, with what tests say about each: they become its siblings,
                but for those that the guard refuses.

        Raises:
            InvalidRequest: the conversation was erased, or the guard refuses the answer.
        """
        tree_id = self._awaited.pop(node_id)
        try:
            text = self._guard.check_input(tree_id, answer)
        except InvalidRequest as error:
            self._finish_awaited(node_id, tree_id, status=NodeStatus.ERROR, error=str(error))
            raise
        beside: list[tuple[str, Verdict | None]] = []
        for one, told in others:
            with suppress(InvalidRequest):  # the answer itself is saved all the same
                beside.append((self._guard.check_input(tree_id, one), told))
        self._finish_awaited(
            node_id,
            tree_id,
            text=text,
            status=NodeStatus.DONE,
            finish=(verdict or FinishReason.STOP).value,
            others=beside,
        )

    def _finish_awaited(
        self,
        node_id: str,
        tree_id: str,
        *,
        others: Sequence[tuple[str, Verdict | None]] = (),
        **changes: Any,
    ) -> None:
        conversation = self._loaded.find(tree_id)
        nodes = [] if conversation is None else conversation.nodes
        node = next((one for one in nodes if one.id == node_id), None)
        if node is None:
            self._store.writes.wait()
            node = self._store.nodes.get(node_id)
        if node is None or node.status is not NodeStatus.STREAMING:
            raise InvalidRequest("Its conversation does not wait for it any more.")
        self._new_nodes.finish_exchange(conversation, replace(node, **changes), others)

    @property
    def queued(self) -> tuple[str, ...]:
        """Messages to send after the running answer, oldest first."""
        current = self._loaded.current
        return tuple(self._guard.shown_text(current.id, text) for text in current.queued)

    def withdraw(self) -> str | None:
        """Remove and return the newest queued message; None if there is none."""
        current = self._loaded.current
        return self._guard.shown_text(current.id, current.queued.pop()) if current.queued else None

    def remember(self, text: str) -> None:
        """Add what is saved in another way to the history: a changed message, or a call of an agent."""
        self._history.append(text)

    def remember_command(self, text: str) -> None:
        """Add a slash command to the history and save it, unless the guard refuses its text."""
        tree_id = self._loaded.current.id
        self._history.append(text)
        try:
            stored = self._guard.check_input(tree_id, text)
        except InvalidRequest:
            return
        self._store.prompts.add_command(tree_id, stored, self._wall())

    def history(self) -> list[str]:
        """What was typed last in all conversations, oldest first, without consecutive duplicates.

        These are messages, changed messages and slash commands.
        """
        history = list(self._history)
        return [text for i, text in enumerate(history) if i == 0 or text != history[i - 1]]

    def restore_draft(self) -> str:
        """The unsent text of the open conversation.

        Messages that were queued when the process ended are queued again; `send` sends them first.
        """
        current = self._loaded.current
        draft = self._drafts.read(current.id)
        for node_id, queue in draft.queues.items():
            current.queues.setdefault(node_id, deque(queue))
        return draft.text

    def keep_draft(self, text: str | None = None, *, typed_in: str | None = None) -> None:
        """Save the unsent text and the queued messages of a conversation, if they changed.

        Args:
            text: the unsent text; None if it is as before.
            typed_in: the conversation; None takes the open one.
        """
        current = self._loaded.current
        if typed_in not in (None, current.id):
            other = self._loaded.find(typed_in)
            queues = self._drafts.read(typed_in).queues if other is None else other.queues
            self._drafts.keep(typed_in, text=text, queues=queues)
            return
        self._drafts.keep(current.id, text=text, queues=current.queues)
        if not current.saved and self._drafts.read(current.id).text:
            # Until it is sent, no other process may open this draft.
            self._store.leases.claim(current.id)

    def keep_queued(self) -> None:
        """Save the queued messages that changed, those of conversations that are not open too."""
        if self._closed:
            return
        for conversation in (self._loaded.current, *self._loaded.written.values()):
            if conversation.queues or self._drafts.knows(conversation.id):
                self._drafts.keep(conversation.id, queues=conversation.queues)

    def close(self) -> None:
        """Save what is queued for the last time; agents' answers will not come any more. Idempotent."""
        self.keep_queued()
        self._closed = True
        while self._awaited:
            node_id, tree_id = self._awaited.popitem()
            with suppress(InvalidRequest):  # the conversation was erased
                self._finish_awaited(
                    node_id, tree_id, status=NodeStatus.STOPPED, finish=FinishReason.ABORT.value
                )
