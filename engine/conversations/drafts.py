"""`Drafts`: the unsent text and the queued messages of each conversation, kept on disk.

A draft is saved only when it differs from what was saved last, and each save replaces the one before
that has not been written yet. `TreeSession` calls `keep` when its conversation may have changed; the front
end limits how often, because it knows when a key was pressed.
"""

import json
import time
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, field

from engine.conversations.storage.store import Store


@dataclass(frozen=True, slots=True)
class Draft:
    """What was not sent yet.

    Attributes:
        text: the text in the prompt.
        queues: messages waiting for the end of an answer, oldest first, by the answer's node id.
    """

    text: str = ""
    queues: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


class Drafts:
    """Drafts by conversation.

    Args:
        store: owned by the caller.
        wall: seconds since the epoch.
    """

    def __init__(self, store: Store, wall: Callable[[], float] = time.time) -> None:
        self._store = store
        self._wall = wall
        self._kept: dict[str, Draft] = {}

    def read(self, tree_id: str) -> Draft:
        """The draft of a conversation; an empty one if it has none."""
        if tree_id not in self._kept:
            row = self._store.drafts.read(tree_id)
            self._kept[tree_id] = Draft() if row is None else Draft(row[0], _queues(row[1]))
        return self._kept[tree_id]

    def knows(self, tree_id: str) -> bool:
        """Whether the draft of this conversation was read or kept by this process."""
        return tree_id in self._kept

    def keep(
        self, tree_id: str, *, text: str | None = None, queues: Mapping[str, Iterable[str]]
    ) -> None:
        """Save a draft; without a text, the text stays as it was. An empty draft is deleted."""
        before = self.read(tree_id)
        waiting = {node_id: tuple(queue) for node_id, queue in queues.items()}
        draft = Draft(
            before.text if text is None else text,
            {node_id: queue for node_id, queue in waiting.items() if queue},
        )
        if draft == before:
            return
        del self._kept[tree_id]  # the newest one is at the end
        self._kept[tree_id] = draft
        if draft == Draft():
            self._store.drafts.delete(tree_id)
        else:
            queued = json.dumps(draft.queues)
            self._store.drafts.save(tree_id, draft.text, queued, self._wall())

    def forget(self, tree_id: str) -> None:
        """Delete the draft of a conversation."""
        self.keep(tree_id, text="", queues={})

    def claim_unsaved_conversation(
        self, after: float = 0.0, *, sent: Container[str] = ()
    ) -> str | None:
        """The newest conversation that has a draft and nothing else, if no other process has it open.

        Does not wait for queued writes: of the drafts that this process kept, it knows the newest state.

        Args:
            after: seconds since the epoch; older drafts do not count.
            sent: conversations that have messages, though the file may not have them yet.
        """
        mine = [one for one, draft in self._kept.items() if draft != Draft()]
        newest = [one for one in reversed(mine) if self._store.trees.get(one) is None]
        newest += [one for one in self._store.drafts.unsaved(after) if one not in self._kept]
        tree_id = next((one for one in newest if one not in sent), None)
        if tree_id is None or self._store.leases.claim(tree_id) == "elsewhere":
            return None
        return tree_id


def _queues(queued: str) -> dict[str, tuple[str, ...]]:
    return {node_id: tuple(queue) for node_id, queue in json.loads(queued).items()}
