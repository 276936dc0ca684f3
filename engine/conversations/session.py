"""`TreeSession`: the interface of front ends to conversations: open, send, stop, pump, undo.

Operations on the tree of the open conversation (fork, edit, expand, prune, …) are in `branches`.

Used by one thread. No call waits for an engine step; disk writes are queued. The front end calls `pump`
periodically: it moves tokens from the engine's mailboxes into the conversations and the store, including
those of conversations that are not open.
"""

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import replace

from engine.api.errors import InvalidRequest
from engine.api.generation_defaults import SamplingChoice
from engine.api.image import Image
from engine.api.request import SamplingParams
from engine.clients.engine_client import EngineClient
from engine.conversations.answer import REPETITION
from engine.conversations.answering import Answering
from engine.conversations.branch_sampling import Changes, change, restored, set_again
from engine.conversations.branch_tree import BranchTree
from engine.conversations.branches import Branches
from engine.conversations.conversation import Conversation
from engine.conversations.drafts import Drafts
from engine.conversations.errors import ConversationChanged
from engine.conversations.export import export_jsonl
from engine.conversations.grounding import found_of
from engine.conversations.importing import read_conversation
from engine.conversations.oplog import Assignment
from engine.conversations.passage_source import FoundPassages, PassageSource
from engine.conversations.store import Store
from engine.conversations.store_news import StoreNews
from engine.conversations.text_guard import NoGuard, TextGuard
from engine.conversations.titles import UNTITLED, title_of
from engine.conversations.tree import (
    NodeDelta,
    NodeKind,
    NodeStatus,
    NodeView,
    SearchHit,
    TreeSummary,
    view_of,
)
from engine.conversations.tree_contents import TreeContents
from engine.conversations.ulid import new_ulid

_HISTORY = 500

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
        background: submit on a thread of its own, for a client whose `submit` waits for a network: `send`
            and the operations of `branches` return at once, and a refusal by the engine ends the answer.

    Attributes:
        default_sampling: sampling parameters of branches that set none.
        branches: operations on the tree of the open conversation.
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
    ) -> None:
        self._guard: TextGuard = NoGuard() if guard is None else guard
        self.default_sampling = sampling
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
            background=background,
            guard=self._guard,
            passages=passages,
        )
        # Conversations that were written to, until all is on disk: the store may not have them yet.
        self._written: dict[str, Conversation] = {}
        self._renamed: dict[str, str] = {}  # titles of others, until they are on disk
        self._news = StoreNews(store.reads)
        self._history: deque[str] = deque(store.nodes.prompts(_HISTORY), maxlen=_HISTORY)
        self._drafts = Drafts(store)
        self._closed = False
        self._followed: list[NodeDelta] = []
        self._current = self._last_used() if resume else self._empty()
        self.branches = Branches(
            store, client, self._answering, current=lambda: self._current, writing=self._writing,
            sampling=lambda: self.sampling, admit=self._admit,
        )  # fmt: skip

    # Conversations.

    @property
    def tree_id(self) -> str:
        """The id of the open conversation."""
        return self._current.id

    @property
    def title(self) -> str:
        """The open conversation's title."""
        return self._current.title

    def trees(self, query: str = "", *, archived: bool = False) -> list[TreeSummary]:
        """Saved conversations, newest first; with a query, those that contain it. Waits for queued writes.

        Args:
            query: a text that the title or a message contains; case is ignored.
            archived: list the archived ones instead.
        """
        self._store.writes.wait()
        unsaved = () if archived else self._unsaved_summaries(query)
        return self._store.searches.trees(query, archived=archived, unsaved=unsaved)

    def start_trees(self, query: str, *, archived: bool = False) -> "Future[list[TreeSummary]]":
        """`trees` in the background. A new call cancels the one before it."""
        unsaved = () if archived else self._unsaved_summaries(query)
        return self._store.searches.start_trees(query, archived=archived, unsaved=unsaved)

    def _unsaved_summaries(self, query: str) -> tuple[TreeSummary, ...]:
        """The conversations that contain the query and may not be on disk yet."""
        self._forget_saved()
        return tuple(
            conversation.summary()
            for conversation in self._written.values()
            if conversation.contains(query.strip())
        )

    def new_tree(self) -> str:
        """Open an empty conversation; returns its id. A running answer continues in the background.

        It is the one with an unsent text, if there is one.
        """
        self._forget_saved()
        self._current = self._empty(self._drafts.claim_unsaved_conversation(sent=self._written))
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
        else:
            self._renamed[tree_id] = title
        if conversation is None or conversation.saved:
            self._store.operations.assign(tree_id, "rename", [Assignment("title", "", title)])

    def delete_tree(self, tree_id: str) -> None:
        """Archive a conversation: it is no longer listed, its nodes are kept. Stops its answer."""
        conversation = self._loaded(tree_id)
        if conversation is not None:
            self._answering.stop_all(conversation)
        if conversation is None or conversation.saved:
            self._store.operations.assign(tree_id, "archive", [Assignment("archived", "", 1)])
        self._written.pop(tree_id, None)
        self._drafts.forget(tree_id)
        if tree_id == self._current.id:
            self.new_tree()

    def unarchive_tree(self, tree_id: str) -> None:
        """List an archived conversation again."""
        self._store.operations.assign(tree_id, "unarchive", [Assignment("archived", "", 0)])

    def erase_trees(self, tree_ids: Sequence[str]) -> int:
        """Delete archived conversations for good; returns how many. Cannot be undone.

        Raises:
            InvalidRequest: another process is answering in one of them; nothing was deleted.
            StoreError: the file takes no writes.
        """
        claimed: list[str] = []
        try:
            for tree_id in tree_ids:
                if self._store.leases.claim(tree_id) == "elsewhere":
                    raise InvalidRequest(
                        "Another Pravāha process is generating an answer of one of them: wait until it "
                        "has finished."
                    )
                claimed.append(tree_id)
            if self._current.id in tree_ids:
                self._answering.stop_all(self._current)
                self.new_tree()
            erased = self._store.trees.erase(tree_ids)
            self._guard.forget(tree_ids)
            return erased
        finally:
            for tree_id in claimed:
                self._store.leases.release(tree_id)

    def export(self) -> Iterator[str]:
        """The saved nodes of the open conversation as JSON Lines, all branches included.

        Raises:
            StoreError: messages cannot be saved at present.
        """
        self._store.writes.flush()
        return export_jsonl(self._store, self._current.id)

    def contents(self) -> TreeContents | None:
        """The saved part of the open conversation, with all branches; None if nothing is saved yet.

        Raises:
            StoreError: messages cannot be saved at present.
        """
        self._store.writes.flush()
        return self._store.trees.contents(self._current.id)

    def import_conversation(self, text: str) -> None:
        """Add the conversation in a text and open it; formats as in `importing`.

        Raises:
            InvalidRequest: the text is no conversation; nothing was added.
            StoreError: the file takes no writes.
        """
        contents = read_conversation(text, new_id=self._new_id, now=time.time())
        self._store.trees.restore(contents)
        self._store.writes.flush()
        self.open_tree(contents.tree_id)

    def path(self) -> list[NodeView]:
        """The messages of the open conversation, from root to head, as they are shown."""
        return [self.view(node.id) for node in self._current.nodes]

    @property
    def tree(self) -> BranchTree:
        """All branches of the open conversation; not to be changed by the caller."""
        return self._current.tree

    @property
    def version(self) -> tuple[str, int]:
        """Differs after every change of the open conversation other than new text of its answers."""
        return self._current.id, self._current.version

    @property
    def head(self) -> str | None:
        """The id of the last node of the open path; None if the conversation is empty."""
        return self._current.head

    def on_path(self, node_id: str) -> bool:
        """Whether a node with new output is on the open path: such a node is among the last ones."""
        return any(node.id == node_id for node in self._current.nodes[-4:])

    def view(self, node_id: str) -> NodeView:
        """A node of any branch of the open conversation as it is shown, including the text so far."""
        view = self._current.view(node_id)
        if node_id in self._current.answers:  # it was checked while it was generated
            return view
        if view.checked_text is not None:
            view = replace(view, text=view.checked_text)
        return self._guard.shown(self._current.id, view)

    def search(self, query: str) -> list[SearchHit]:
        """Messages that contain the query, in every branch of every conversation, newest first."""
        self._store.writes.wait()
        return self._store.searches.messages(query)

    def start_search(self, query: str) -> "Future[list[SearchHit]]":
        """`search` in the background; does not wait for queued writes. A new search cancels the last."""
        return self._store.searches.start_messages(query)

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

    @property
    def sampling(self) -> SamplingChoice:
        """The sampling parameters of the next answer on the open path; see `branch_sampling`."""
        conversation = self._current
        chosen = conversation.sampling.get(conversation.head or "")
        if chosen is None and conversation.answer is not None:
            chosen = set_again(self.default_sampling, conversation.answer.sampling)
        return chosen or restored(self.default_sampling, conversation.nodes)

    def change_sampling(self, changes: Changes) -> None:
        """Set parameters of the open branch, or leave them to the settings again.

        Raises:
            InvalidRequest: a value is out of range; nothing was changed.
        """
        conversation = self._current
        changed = change(self.sampling, self.default_sampling, changes)
        conversation.sampling[conversation.head or ""] = changed

    # Sources.

    @property
    def sources(self) -> tuple[str, ...]:
        """The collections that the next message of the open path is answered from."""
        return self._current.tree.sources_after(self._current.head)

    def attach_source(self, name: str, *, instead_of: str | None = None) -> bool:
        """Answer the next messages of the open branch from a collection, too; False if they are already.

        Forks after this place keep it. It can be undone once the conversation has a message.

        Args:
            name: what the `PassageSource` finds passages in.
            instead_of: what is detached at the same time, if it is attached.

        Raises:
            InvalidRequest: another process is answering in the conversation.
            ConversationChanged: another process has added to it.
        """
        if name in self.sources:
            return False
        kept = [one for one in self.sources if one != instead_of]
        self._set_sources((*kept, name), f"attach {name}")
        return True

    def detach_source(self, name: str) -> bool:
        """The opposite of `attach_source`, for the open branch from here on; False if it is not attached."""
        if name not in self.sources:
            return False
        self._set_sources([one for one in self.sources if one != name], f"detach {name}")
        return True

    def _set_sources(self, names: Sequence[str], operation: str) -> None:
        with self._writing(self._current) as conversation:
            changes = conversation.tree.attaches(conversation.head, names)
            if conversation.saved:
                self._store.operations.assign(conversation.id, operation, changes)
            conversation.tree.apply(changes)
            conversation.version += 1

    def passages_of(self, node_id: str) -> FoundPassages | None:
        """The passages that a message, or the answer to it, was given; None if none were sought.

        Raises:
            InvalidRequest: the message is not on disk yet and cannot be read at present.
        """
        current = self._current
        if node_id not in current.tree and node_id not in current.answers:
            return None
        path = self.branches.path_to(node_id)
        users = [node for node in path if node.kind is NodeKind.USER]
        return found_of(users[-1]) if users else None

    def images_of(self, node_id: str) -> tuple[Image, ...]:
        """The images of a message of the open conversation.

        Raises:
            InvalidRequest: no such message, or it is not on disk yet and cannot be read at present.
        """
        return self.branches.path_to(node_id)[-1].images

    # Answers.

    @property
    def generating(self) -> bool:
        """Whether an answer runs at the end of the open path."""
        return self._current.answer is not None

    @property
    def stopped_for_repetition(self) -> bool:
        """Whether the open path ends with an answer that was stopped because it repeated itself."""
        nodes = self._current.nodes
        return bool(nodes) and not self.generating and nodes[-1].finish == REPETITION

    @property
    def running(self) -> tuple[str, ...]:
        """The ids of all nodes of the open conversation whose answer runs."""
        return tuple(self._current.answers)

    @property
    def request_id(self) -> str | None:
        """The request id of the answer that runs at the end of the open path, or None."""
        answer = self._current.answer
        return None if answer is None else answer.request_id

    @property
    def queued(self) -> tuple[str, ...]:
        """Messages to send after the running answer, oldest first."""
        current = self._current
        return tuple(self._guard.shown_text(current.id, text) for text in current.queued)

    def restore_draft(self) -> str:
        """The unsent text of the open conversation.

        Messages that were queued when the process ended are queued again; `send` sends them first.
        """
        draft = self._drafts.read(self._current.id)
        for node_id, queue in draft.queues.items():
            self._current.queues.setdefault(node_id, deque(queue))
        return draft.text

    def keep_draft(self, text: str | None = None) -> None:
        """Save the unsent text and the queued messages of the open conversation, if they changed.

        Args:
            text: the unsent text; None if it is as before.
        """
        current = self._current
        self._drafts.keep(current.id, text=text, queues=current.queues)
        if not current.saved and self._drafts.read(current.id).text:
            self._store.leases.claim(
                current.id
            )  # until it is sent, no other process may open this draft

    def withdraw(self) -> str | None:
        """Remove and return the newest queued message; None if there is none."""
        current = self._current
        return self._guard.shown_text(current.id, current.queued.pop()) if current.queued else None

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
        if not text.strip() and not images:
            raise InvalidRequest("The message is empty: type something to send.")
        if images and (self._current.answer is not None or self._current.queued):
            raise InvalidRequest(
                "A message with images cannot wait for an answer: send it when none is running."
            )
        written, text = text, self._admit(text)
        if self._current.answer is not None:
            self._current.queue(text)
        else:
            with self._writing(self._current) as conversation:
                # Messages queued before the last start come first.
                answered, waiting = conversation.head or "", [*conversation.queued, text]
                self._answering.ask(
                    conversation, conversation.nodes, waiting[0], self.sampling, images=images
                )
                conversation.queues.pop(answered, None)
                for later in waiting[1:]:
                    conversation.queue(later)
        self._keep_queued()
        if written.strip():
            self._history.append(written)

    def stop(self, node_id: str | None = None) -> None:
        """Stop an answer of the open conversation at the next step boundary; its text is kept.

        Args:
            node_id: the answer, in any branch; None takes the one at the end of the open path.
        """
        self._answering.stop(self._current, node_id or self._current.head)

    def regenerate(self) -> None:
        """Generate the last answer again, as a sibling with the next seed; see `Branches.regenerate`."""
        self.branches.regenerate()

    def undo(self) -> str | None:
        """Undo the last operation in the open conversation; returns its name, or None.

        Running answers go on.

        Raises:
            InvalidRequest: another process is answering in the conversation.
            StoreError: the file takes no writes.
        """
        return self._replay(self._store.operations.undo)

    def redo(self) -> str | None:
        """Redo the operation undone last; returns its name, or None. As `undo`."""
        return self._replay(self._store.operations.redo)

    def follow(self) -> bool:
        """Read what another process has added to the end of the open path; whether `pump` has news of it.

        Costs microseconds if nothing was written. If the process opened another branch of the conversation,
        the open path stays as it is, see `follow_branches`; the next message here reports it.
        """
        current = self._current
        if not current.saved or current.answers or not current.nodes or self._store.writes.saving:
            return False
        last = current.nodes[-1]
        if last.status is NodeStatus.STREAMING:
            self._store.nodes.stop_orphans()
        head = self._store.trees.head(current.id) if self._news.of_path() else None
        path = self._store.nodes.path(head) if head else []
        begun = len(current.nodes)
        if [node.id for node in path[:begun]] != [node.id for node in current.nodes]:
            self._news.other_branch = bool(path)
            return False
        grown, added = path[begun - 1], path[begun:]
        if not added and (grown.text, grown.status) == (last.text, last.status):
            return False
        self._read_path(current)
        before, after = (self._guard.shown(current.id, view_of(one)).text for one in (last, grown))
        text = after.removeprefix(before)
        self._followed.append(NodeDelta(grown.id, text, grown.status, grown.finish, grown.error))
        self._followed += [
            NodeDelta(node.id, "", node.status, node.finish, node.error) for node in added
        ]
        return True

    def follow_branches(self) -> bool:
        """Read the branches that another process has added; whether there are any. Call it after `follow`.

        The open path stays where it is.
        """
        current = self._current
        if not self._news.other_branch or current.answers or self._store.writes.saving:
            return False
        self._news.other_branch = False
        tree, head = self._store.trees.branch_tree(current.id), current.head
        if head is None or head not in tree or tree[head].pruned_at is not None:
            return False  # the next message here reports it
        tree.apply(tree.moves_to(head))
        current.tree = tree
        current.version += 1
        return True

    def others_changed_list(self) -> bool:
        """Whether conversations were added, continued, archived or erased since the last call.

        Costs microseconds if nothing was written.
        """
        return not self._store.writes.saving and self._news.of_list()

    def pump(self) -> list[NodeDelta]:
        """Drain the engine's output; returns the changes, those of `follow` too. Called periodically.

        Costs microseconds without new output. A delta of an unknown node means that the path changed:
        read `path` again.
        """
        deltas, self._followed = [*self._followed, *self._answering.pump()], []
        self._keep_queued()
        return deltas

    def take_notice(self) -> str | None:
        """A sentence for the user about the store (damage, failed writes), returned once; else None."""
        return self._store.writes.take_notice()

    @property
    def unsaved(self) -> str | None:
        """Why messages cannot be saved at present (a full disk), or None. They are kept in memory."""
        return self._store.writes.unsaved

    @property
    def saving(self) -> bool:
        """Whether something is not on disk yet."""
        return self._store.writes.saving

    def close(self) -> None:
        """Stop all answers, save their text, and wait until it is on disk. Idempotent.

        Raises:
            StoreError: a queued write failed.
        """
        self._keep_queued()
        self._closed = True
        self._answering.close()
        self._store.writes.flush()

    # Internal: conversations.

    def _keep_queued(self) -> None:
        """Save the queued messages that changed."""
        if self._closed:
            return
        for conversation in (self._current, *self._written.values()):
            if conversation.queues or self._drafts.knows(conversation.id):
                self._drafts.keep(conversation.id, queues=conversation.queues)

    def _last_used(self) -> Conversation:
        """The newest conversation, or the empty one with a newer draft."""
        newest = self._store.searches.trees()[:1]
        unsaved = self._drafts.claim_unsaved_conversation(newest[0].updated_at if newest else 0.0)
        if newest and unsaved is None:
            return self._load(newest[0].id)
        return self._empty(unsaved)

    def _admit(self, text: str) -> str:
        """What is stored of a text of the open conversation."""
        return self._guard.admit(self._current.id, text)

    def _empty(self, tree_id: str | None = None) -> Conversation:
        return Conversation(
            id=tree_id or self._new_id(),
            title=UNTITLED,
            system_prompt=self._default_system_prompt,
            system_optional=not self._system_required,
        )

    def _load(self, tree_id: str) -> Conversation:
        """Read a conversation that is not in `_written`: its messages are on disk, nothing is waited for."""
        summary = self._store.trees.get(tree_id)
        if summary is None:
            raise InvalidRequest(f"There is no conversation {tree_id}.")
        title = self._renamed.get(tree_id, summary.title)
        conversation = Conversation(tree_id, title, None, saved=True)
        self._read_path(conversation)
        return conversation

    def _read_path(self, conversation: Conversation) -> None:
        """Read tree and path from the store; answers that run here are kept."""
        conversation.tree = self._store.trees.branch_tree(conversation.id)
        head = conversation.tree.head
        conversation.nodes = self._store.nodes.path(head) if head else []
        conversation.version += 1
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
                self._read_path(conversation)
                summary = self._store.trees.get(conversation.id)
                conversation.title = summary.title if summary else conversation.title
        return name

    @contextmanager
    def _writing(self, conversation: Conversation) -> Iterator[Conversation]:
        """The right to change the conversation; kept while an answer runs, otherwise given back.

        Raises:
            InvalidRequest: another process is answering in it.
            ConversationChanged: another process has added to it.
        """
        claim = self._store.leases.claim(conversation.id)
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
            if not conversation.answers:
                self._store.leases.release(conversation.id)

    def _reload_if_changed(self, conversation: Conversation) -> None:
        """Load the conversation again if another process has added to it, and raise.

        What this process added is on disk: its claim was given back after that.
        """
        last = conversation.nodes[-1] if conversation.nodes else None
        head = self._store.trees.head(conversation.id)
        known = None if last is None else last.id
        if head == known and (last is None or last.status is not NodeStatus.STREAMING):
            return
        self._store.nodes.stop_orphans()  # nobody else writes to it: a streaming answer was interrupted
        self._store.writes.wait()
        self._read_path(conversation)
        raise ConversationChanged(
            "This conversation was continued in another Pravāha process: its new messages were "
            "loaded. Send yours again if it still fits."
        )

    def _forget_saved(self) -> None:
        """Forget the conversations whose messages are all on disk."""
        if not self._store.writes.saving:
            self._renamed.clear()
            self._written = {
                tree_id: conversation
                for tree_id, conversation in self._written.items()
                if conversation.answers
            }
