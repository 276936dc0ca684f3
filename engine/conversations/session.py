"""What a front end does with conversations: open, send, stop, regenerate, and pump.

Belongs to one thread (the screen's, or the plain chat's). Nothing here waits for the engine's step;
disk writes are queued. Call `pump` from the front end's clock: it moves tokens from the engine's
mailboxes into the conversation and the store, also for answers of conversations that are not shown.
"""

import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace

from engine.api.errors import InvalidRequest
from engine.api.request import SamplingParams
from engine.clients.engine_client import EngineClient
from engine.conversations.answering import Answering
from engine.conversations.conversation import Conversation
from engine.conversations.export import export_jsonl
from engine.conversations.oplog import Assignment
from engine.conversations.store import Store
from engine.conversations.titles import UNTITLED, title_of
from engine.conversations.tree import Node, NodeDelta, NodeKind, NodeView, TreeSummary
from engine.conversations.ulid import new_ulid

_HISTORY = 500

DEFAULT_SAMPLING = SamplingParams(temperature=0.2, top_p=0.9, logprobs=0)
"""Cool enough for small models; the sampled tokens' logprobs are kept with every answer."""


class TreeSession:
    """The conversations of one store, continued by one engine.

    Opens the conversation that was used last, or an empty one. An empty conversation reaches the
    store with its first message.

    Args:
        store: stays the caller's: close it after the session.
        client: stays the caller's likewise.
        clock: monotonic seconds; paces saving.
        wall: seconds since the epoch; dates nodes.
        new_id: makes increasing ids.
        sampling: how answers are written.
        system_prompt: what new conversations start with.
        system_required: whether that is the user's wish; if not, it is left out where the model's
            template takes no system message.
        resume: open the last conversation rather than an empty one.

    Attributes:
        sampling: how the next answers will be written.
    """

    def __init__(
        self,
        store: Store,
        client: EngineClient,
        *,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
        new_id: Callable[[], str] = new_ulid,
        sampling: SamplingParams = DEFAULT_SAMPLING,
        system_prompt: str | None = None,
        system_required: bool = True,
        resume: bool = True,
    ) -> None:
        self.sampling = sampling
        self._store = store
        self._new_id = new_id
        self._default_system_prompt = system_prompt
        self._system_required = system_required
        self._answering = Answering(store, client, clock=clock, wall=wall, new_id=new_id)
        self._history: deque[str] = deque(store.prompts(_HISTORY), maxlen=_HISTORY)
        newest = store.trees()[:1] if resume else []
        self._current = self._load(newest[0].id) if newest else self._empty()

    # Conversations.

    @property
    def tree_id(self) -> str:
        """The open conversation."""
        return self._current.id

    @property
    def title(self) -> str:
        """The open conversation's title."""
        return self._current.title

    def trees(self, query: str = "") -> list[TreeSummary]:
        """Saved conversations, newest first; with a query, those that contain it."""
        self._store.settle()
        return self._store.trees(query)

    def new_tree(self) -> str:
        """Open an empty conversation; its id. A running answer goes on in the background."""
        self._current = self._empty()
        return self._current.id

    def open_tree(self, tree_id: str) -> None:
        """Show another conversation. A running answer goes on in the background.

        Raises:
            InvalidRequest: there is no such conversation.
        """
        if tree_id != self._current.id or self._current.saved:
            self._current = self._answering.running(tree_id) or self._load(tree_id)

    def rename_tree(self, tree_id: str, title: str) -> None:
        """Give a conversation another title; can be undone."""
        title = title_of(title)
        conversation = self._known(tree_id)
        if conversation is not None:
            conversation.title = title
        if conversation is None or conversation.saved:
            self._store.assign(tree_id, "rename", [Assignment("title", "", title)])

    def delete_tree(self, tree_id: str) -> None:
        """Archive a conversation: it leaves the list, its nodes stay. Stops its answer."""
        conversation = self._known(tree_id)
        if conversation is not None:
            conversation.queued.clear()
            self._answering.stop(conversation)
        if conversation is None or conversation.saved:
            self._store.assign(tree_id, "archive", [Assignment("archived", "", 1)])
        if tree_id == self._current.id:
            self.new_tree()

    def export(self) -> Iterator[str]:
        """The open conversation as JSON Lines, every branch of it, as far as it is saved."""
        self._store.settle()
        return export_jsonl(self._store, self._current.id)

    def path(self) -> list[NodeView]:
        """The open conversation's messages, root to head."""
        return self._current.path()

    def context_used(self) -> int:
        """Tokens of the open conversation as last fed and continued; 0 before the first answer."""
        return self._current.context_used()

    def prompt_history(self) -> list[str]:
        """The newest user messages of all conversations, oldest first, none twice in a row."""
        history = list(self._history)
        return [text for i, text in enumerate(history) if i == 0 or text != history[i - 1]]

    @property
    def system_prompt(self) -> str | None:
        """What the next message of the open conversation will be sent with."""
        return self._current.system_prompt

    @system_prompt.setter
    def system_prompt(self, text: str | None) -> None:
        self._current.system_prompt = text or None
        self._current.system_optional = False

    # Answers.

    @property
    def generating(self) -> bool:
        """Whether the open conversation's answer is being written."""
        return self._current.answer is not None

    @property
    def request_id(self) -> str | None:
        """The engine's request behind the open conversation's answer, while there is one."""
        answer = self._current.answer
        return None if answer is None else answer.request_id

    @property
    def queued(self) -> tuple[str, ...]:
        """Messages that wait for the running answer's end, oldest first."""
        return tuple(self._current.queued)

    def withdraw(self) -> str | None:
        """Take the newest queued message back; None when nothing is queued."""
        return self._current.queued.pop() if self._current.queued else None

    def send(self, text: str) -> None:
        """Ask. While an answer is being written the message is queued instead.

        Raises:
            InvalidRequest: nothing to send, or the conversation no longer fits the context; nothing
                was added.
            QueueFull, EngineUnavailable: the engine takes no more; nothing was added.
        """
        if not text.strip():
            raise InvalidRequest("The message is empty: type something to send.")
        if self._current.answer is not None:
            self._current.queued.append(text)
        else:
            self._refuse_while_writing(self._current)
            self._answering.ask(self._current, text, self.sampling)
        self._history.append(text)

    def stop(self) -> None:
        """End the running answer at the engine's next step; what is written stays."""
        self._answering.stop(self._current)

    def regenerate(self) -> None:
        """Write the last answer again, as a sibling with the next seed.

        Raises:
            InvalidRequest: an answer is being written, or there is none to write again.
            QueueFull, EngineUnavailable: the engine takes no more; nothing was added.
        """
        conversation = self._current
        self._refuse_while_writing(conversation)
        path, sampling = list(conversation.nodes), self.sampling
        if path and path[-1].kind is NodeKind.ASSISTANT:
            sampling = _next_seed(sampling, path.pop())
        if not path or path[-1].kind is not NodeKind.USER:
            raise InvalidRequest("There is no answer to write again: send a message first.")
        self._answering.answer_again(conversation, path, sampling)

    def undo(self) -> str | None:
        """Take back the last change of pointers or flags in the open conversation; its name."""
        return self._replay(self._store.undo)

    def redo(self) -> str | None:
        """Repeat the change undone last; its name."""
        return self._replay(self._store.redo)

    def pump(self) -> list[NodeDelta]:
        """Take in what the engine wrote. Call it from the front end's clock.

        Costs microseconds when nothing is new. A delta whose node is not on the path that the front
        end knows announces new nodes: read `path` again.
        """
        return self._answering.pump()

    def take_notice(self) -> str | None:
        """One sentence the user should see about the store (damage, failed writes), once."""
        if self._store.notice is not None:
            notice, self._store.notice = self._store.notice, None
            return notice
        return self._store.take_failure()

    def close(self) -> None:
        """Stop every answer, keep what is written, and wait until it is on disk. Idempotent."""
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
        self._store.settle()
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

    def _known(self, tree_id: str) -> Conversation | None:
        return self._current if tree_id == self._current.id else self._answering.running(tree_id)

    def _replay(self, replay: Callable[[str], str | None]) -> str | None:
        self._refuse_while_writing(self._current)
        name = replay(self._current.id)
        if name is not None:
            self._current = self._load(self._current.id)
        return name

    @staticmethod
    def _refuse_while_writing(conversation: Conversation) -> None:
        if conversation.answer is not None:
            raise InvalidRequest("An answer is being written: stop it first.")
        if conversation.written_elsewhere():
            raise InvalidRequest(
                "Another Pravāha is writing this conversation's answer: wait for its end and open "
                "the conversation again."
            )


def _next_seed(sampling: SamplingParams, last: Node) -> SamplingParams:
    """With a fixed seed a second answer would repeat the first: take the one after it."""
    if sampling.seed is None:
        return sampling
    return replace(sampling, seed=((sampling.seed if last.seed is None else last.seed) + 1) % 2**64)
