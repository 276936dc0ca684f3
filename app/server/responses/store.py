"""`ResponseStore`: responses, conversations and their items, in one SQLite file.

A response that is kept can be read, and be gone on from by `previous_response_id`. It is kept for
`MAX_AGE_S` seconds after its last use, and at most `MAX_RESPONSES` and `MAX_BYTES` of them are: those that
were not used for the longest time go first. Going on from a response uses all that led to it.
Conversations stay until they are deleted. What is deleted is overwritten with zeros.

All methods block, and may be called from any thread.
"""

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple

import orjson

from app.server.wire.errors import ApiError, bad_request, unavailable
from engine.files.sqlite_file import create_sqlite_file, transaction

MAX_RESPONSES = 10_000
MAX_BYTES = 256 * 1024 * 1024
MAX_AGE_S = 30 * 24 * 3600.0
MAX_CHAIN = 1000
"""Responses that one can go on from by going on from the last of them."""
MAX_CONVERSATIONS = 10_000
SCHEMA_VERSION = 1

Side = Literal["input", "output", "conversation"]
Item = dict[str, Any]


class ItemPage(NamedTuple):
    """A part of a list of items, and whether there are more behind it."""

    items: list[Item]
    has_more: bool


class ResponseStore:
    """The store; without a path it is in memory, and is gone with the process."""

    def __init__(
        self,
        path: Path | None = None,
        *,
        clock: Callable[[], float] = time.time,
        max_responses: int = MAX_RESPONSES,
        max_bytes: int = MAX_BYTES,
        max_age_s: float = MAX_AGE_S,
    ) -> None:
        """Nothing is opened yet.

        Args:
            path: the file; it is created when it is first needed.
            clock: Unix time in seconds.
            max_responses: how many responses are kept.
            max_bytes: how much of them.
            max_age_s: how long after their last use.
        """
        self._path = path
        self._clock = clock
        self._limits = (max_responses, max_bytes, max_age_s)
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None

    def close(self) -> None:
        """Close the file; a later call opens it again. Idempotent."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    # Responses.

    def add_response(self, response: Mapping[str, Any], inputs: Sequence[Item]) -> None:
        """Keep a response with the items of its input."""
        body = orjson.dumps(response)
        size = len(body) + sum(len(orjson.dumps(one)) for one in inputs)
        with self._transaction() as db:
            db.execute(
                "INSERT INTO response (id, previous, used, size, body) VALUES (?, ?, ?, ?, ?)",
                (
                    response["id"],
                    response["previous_response_id"],
                    self._clock(),
                    size,
                    body.decode(),
                ),
            )
            self._add_items(db, response["id"], "input", inputs)
            self._add_items(db, response["id"], "output", response["output"])
            self._evict(db)

    def update_response(self, response: Mapping[str, Any]) -> None:
        """Replace a response, unless it was deleted meanwhile."""
        body = orjson.dumps(response)
        with self._transaction() as db:
            changed = db.execute(
                "UPDATE response SET body = ?, size = size - length(CAST(body AS BLOB)) + ? WHERE id = ?",
                (body.decode(), len(body), response["id"]),
            )
            if changed.rowcount:
                db.execute(
                    "DELETE FROM item WHERE owner = ? AND side = 'output'", (response["id"],)
                )
                self._add_items(db, response["id"], "output", response["output"])
                self._evict(db)

    def response(self, response_id: str) -> dict[str, Any]:
        """A response.

        Raises:
            ApiError: 404.
        """
        with self._transaction() as db:
            row = db.execute("SELECT body FROM response WHERE id = ?", (response_id,)).fetchone()
            if row is None:
                raise no_response(response_id)
            db.execute("UPDATE response SET used = ? WHERE id = ?", (self._clock(), response_id))
        found: dict[str, Any] = orjson.loads(row[0])
        return found

    def delete_response(self, response_id: str) -> None:
        """Delete a response; one that went on from it cannot be gone on from any more.

        Raises:
            ApiError: 404.
        """
        with self._transaction() as db:
            if not db.execute("DELETE FROM response WHERE id = ?", (response_id,)).rowcount:
                raise no_response(response_id)
            db.execute("DELETE FROM item WHERE owner = ?", (response_id,))

    def history(self, response_id: str) -> list[Item]:
        """The items that led to a response, and its own output, in their order.

        Raises:
            ApiError: 400 if it, or one that led to it, is not kept.
        """
        with self._transaction() as db:
            chain: list[str] = []
            at: str | None = response_id
            while at is not None:
                row = db.execute("SELECT previous FROM response WHERE id = ?", (at,)).fetchone()
                if row is None or len(chain) == MAX_CHAIN:
                    raise bad_request(
                        f"The response {at[:80]!r} is not kept, so there is nothing to go on from."
                        if row is None
                        else f"More than {MAX_CHAIN} responses led to this one.",
                        param="previous_response_id",
                        code="previous_response_not_found",
                    )
                chain.append(at)
                at = row[0]
            now = self._clock()
            db.executemany("UPDATE response SET used = ? WHERE id = ?", [(now, c) for c in chain])
            return [
                orjson.loads(body)
                for owner in reversed(chain)
                for (body,) in db.execute(
                    "SELECT body FROM item WHERE owner = ? ORDER BY number", (owner,)
                )
            ]

    # Items.

    def item(self, item_id: str) -> Item | None:
        """The newest item with an id; None if there is none."""
        with self._transaction() as db:
            row = db.execute(
                "SELECT body FROM item WHERE id = ? ORDER BY number DESC LIMIT 1", (item_id,)
            ).fetchone()
        return None if row is None else orjson.loads(row[0])

    def items(
        self,
        owner: str,
        side: Side,
        *,
        limit: int,
        order: Literal["asc", "desc"],
        after: str | None,
    ) -> ItemPage:
        """A part of the items of a response or of a conversation.

        Args:
            owner: its id.
            side: which of its items; the owner is a conversation only for `conversation`.
            limit: how many at most.
            order: by time.
            after: id of the item before the first one of the part.

        Raises:
            ApiError: 404 without the owner, 400 without an item `after`.
        """
        where, values = "owner = ? AND side = ?", [owner, side]
        direction, beyond = ("ASC", ">") if order == "asc" else ("DESC", "<")
        with self._transaction() as db:
            if side == "conversation":
                self.conversation(owner)
            else:
                self.response(owner)
            if after is not None:
                row = db.execute(
                    f"SELECT number FROM item WHERE {where} AND id = ?",  # noqa: S608
                    (*values, after),
                ).fetchone()
                if row is None:
                    raise bad_request(
                        f"`after` names {after[:80]!r}, which is not in this list.", param="after"
                    )
                where += f" AND number {beyond} ?"
                values.append(row[0])
            rows = db.execute(
                f"SELECT body FROM item WHERE {where} "  # noqa: S608
                f"ORDER BY number {direction} LIMIT ?",
                (*values, limit + 1),
            ).fetchall()
        return ItemPage([orjson.loads(body) for (body,) in rows[:limit]], len(rows) > limit)

    # Conversations.

    def add_conversation(
        self, conversation_id: str, metadata: Mapping[str, str], items: Sequence[Item]
    ) -> dict[str, Any]:
        """A new conversation.

        Raises:
            ApiError: 400 if there are too many.
        """
        with self._transaction() as db:
            (count,) = db.execute("SELECT count(*) FROM conversation").fetchone()
            if count >= MAX_CONVERSATIONS:
                raise bad_request(
                    f"There are {count} conversations, as many as this server keeps: delete some.",
                    code="too_many_conversations",
                )
            db.execute(
                "INSERT INTO conversation (id, created_at, metadata) VALUES (?, ?, ?)",
                (conversation_id, int(self._clock()), orjson.dumps(metadata).decode()),
            )
            self._add_items(db, conversation_id, "conversation", items)
        return self.conversation(conversation_id)

    def conversation(self, conversation_id: str) -> dict[str, Any]:
        """A conversation as OpenAI's object.

        Raises:
            ApiError: 404.
        """
        with self._transaction() as db:
            row = db.execute(
                "SELECT created_at, metadata FROM conversation WHERE id = ?", (conversation_id,)
            ).fetchone()
        if row is None:
            raise no_conversation(conversation_id)
        return {
            "id": conversation_id,
            "object": "conversation",
            "created_at": row[0],
            "metadata": orjson.loads(row[1]),
        }

    def update_conversation(
        self, conversation_id: str, metadata: Mapping[str, str]
    ) -> dict[str, Any]:
        """Replace the metadata.

        Raises:
            ApiError: 404.
        """
        with self._transaction() as db:
            db.execute(
                "UPDATE conversation SET metadata = ? WHERE id = ?",
                (orjson.dumps(metadata).decode(), conversation_id),
            )
        return self.conversation(conversation_id)

    def delete_conversation(self, conversation_id: str) -> None:
        """Delete a conversation and its items.

        Raises:
            ApiError: 404.
        """
        with self._transaction() as db:
            deleted = db.execute("DELETE FROM conversation WHERE id = ?", (conversation_id,))
            if not deleted.rowcount:
                raise no_conversation(conversation_id)
            db.execute("DELETE FROM item WHERE owner = ?", (conversation_id,))

    def conversation_items(self, conversation_id: str) -> list[Item]:
        """All items in their order.

        Raises:
            ApiError: 404.
        """
        with self._transaction() as db:
            self.conversation(conversation_id)
            rows = db.execute(
                "SELECT body FROM item WHERE owner = ? ORDER BY number", (conversation_id,)
            ).fetchall()
        return [orjson.loads(body) for (body,) in rows]

    def extend_conversation(self, conversation_id: str, items: Sequence[Item]) -> None:
        """Append items.

        Raises:
            ApiError: 404.
        """
        with self._transaction() as db:
            self.conversation(conversation_id)
            self._add_items(db, conversation_id, "conversation", items)

    def conversation_item(self, conversation_id: str, item_id: str) -> Item:
        """One item.

        Raises:
            ApiError: 404.
        """
        with self._transaction() as db:
            row = db.execute(
                "SELECT body FROM item WHERE owner = ? AND id = ?", (conversation_id, item_id)
            ).fetchone()
        if row is None:
            raise _no_item(conversation_id, item_id)
        item: Item = orjson.loads(row[0])
        return item

    def delete_conversation_item(self, conversation_id: str, item_id: str) -> dict[str, Any]:
        """Delete one item; the conversation that it was in.

        Raises:
            ApiError: 404.
        """
        with self._transaction() as db:
            conversation = self.conversation(conversation_id)
            deleted = db.execute(
                "DELETE FROM item WHERE owner = ? AND id = ?", (conversation_id, item_id)
            )
            if not deleted.rowcount:
                raise _no_item(conversation_id, item_id)
        return conversation

    # The file.

    @staticmethod
    def _add_items(
        db: sqlite3.Connection, owner: str, side: Side, items: Sequence[Mapping[str, Any]]
    ) -> None:
        db.executemany(
            "INSERT INTO item (id, owner, side, body) VALUES (?, ?, ?, ?)",
            [(one["id"], owner, side, orjson.dumps(one).decode()) for one in items],
        )

    def _evict(self, db: sqlite3.Connection) -> None:
        """Delete what is too old, and what is too much."""
        most, most_bytes, age = self._limits
        gone = [
            one
            for (one,) in db.execute(
                "SELECT id FROM response WHERE used < ?", (self._clock() - age,)
            )
        ]
        count, size = db.execute("SELECT count(*), total(size) FROM response").fetchone()
        if count - len(gone) > most or size > most_bytes:
            kept = kept_bytes = 0
            for one, one_size in db.execute(
                "SELECT id, size FROM response ORDER BY used DESC, rowid DESC"
            ):
                kept, kept_bytes = kept + 1, kept_bytes + one_size
                if kept > 1 and (kept > most or kept_bytes > most_bytes):
                    gone.append(one)
        for one in dict.fromkeys(gone):
            db.execute("DELETE FROM response WHERE id = ?", (one,))
            db.execute("DELETE FROM item WHERE owner = ?", (one,))

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """One transaction, undone by an exception; a nested one joins it.

        Raises:
            ApiError: 503 if the file cannot be used.
        """
        with self._lock:
            try:
                if self._connection is None:
                    self._connection = self._open()
                with transaction(self._connection) as db:
                    yield db
            except (OSError, sqlite3.Error) as error:
                raise unavailable(f"Responses cannot be kept at present: {error}.") from error

    def _open(self) -> sqlite3.Connection:
        if self._path is None:
            db = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        else:
            db = create_sqlite_file(self._path, any_thread=True)
        (version,) = db.execute("PRAGMA user_version").fetchone()
        if version > SCHEMA_VERSION:
            db.close()
            raise unavailable("The kept responses were written by a newer Pravāha.")
        if version < SCHEMA_VERSION:
            script = Path(__file__).with_name("schema.sql").read_text()
            db.executescript(f"BEGIN; {script} PRAGMA user_version = {SCHEMA_VERSION}; COMMIT;")
        return db


def no_response(response_id: str) -> ApiError:
    """The 404 of a response."""
    return ApiError(
        404,
        f"There is no response {response_id[:80]!r}.",
        param="response_id",
        code="response_not_found",
    )


def no_conversation(conversation_id: str) -> ApiError:
    """The 404 of a conversation."""
    return ApiError(
        404,
        f"There is no conversation {conversation_id[:80]!r}.",
        param="conversation",
        code="conversation_not_found",
    )


def _no_item(conversation_id: str, item_id: str) -> ApiError:
    return ApiError(
        404,
        f"There is no item {item_id[:80]!r} in {conversation_id[:80]!r}.",
        param="item_id",
        code="item_not_found",
    )
