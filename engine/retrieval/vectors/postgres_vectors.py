"""`PostgresVectors`: vectors in a table of a PostgreSQL database with pgvector.

A row of the table is a slot; its vector is NULL after `clear`. Every search is exact: it scores all allowed
rows.
Changes are one transaction until `sync`, which commits before the collection's database does; rows that are
beyond it are truncated by the next writer, as in a vector file.

`sync` after `clear` rewrites the table (VACUUM FULL), so that no byte of a deleted vector is left in it. The
server's own write-ahead log, its replicas and its backups are not in our hands.
"""

import io
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from engine.api.error_text import first_line
from engine.api.errors import InvalidRequest
from engine.retrieval.vectors.errors import DamagedVectors, VectorIndexUnavailable
from engine.retrieval.vectors.header import VectorType
from engine.retrieval.vectors.postgres_address import PostgresAddress

if TYPE_CHECKING:
    from pg8000.dbapi import Connection

_TYPES: dict[VectorType, tuple[str, str]] = {"f16": ("halfvec", ">f2"), "f32": ("vector", ">f4")}
"""pgvector's type, and its elements in binary copies."""

_COPY_HEADER = b"PGCOPY\n\xff\r\n\0" + bytes(8)
_COPY_END = struct.pack(">h", -1)
_TIMEOUT_S = 30


class PostgresVectors:
    """See `VectorIndex`. Thread-safe: one statement runs at a time.

    Args:
        address: of the database.
        table: name of the table, letters, digits and `_`.
        dimensions: length of a vector.
        dtype: "f16" or "f32".
    """

    def __init__(
        self, address: PostgresAddress, table: str, *, dimensions: int, dtype: VectorType
    ) -> None:
        self.table, self.dimensions, self.dtype = table, dimensions, dtype
        self._address = address
        self._type, self._element = _TYPES[dtype]
        self._lock = threading.RLock()
        self._connection: Connection | None = None
        self._cleared = self._in_transaction = False

    @classmethod
    def create(
        cls, address: PostgresAddress, table: str, *, dimensions: int, dtype: VectorType
    ) -> Self:
        """Create the table; one of this name, which a crash has left, is dropped.

        Raises:
            VectorIndexUnavailable: the server cannot be reached, or refuses.
        """
        store = cls(address, table, dimensions=dimensions, dtype=dtype)
        with store._executing() as execute:
            execute("CREATE EXTENSION IF NOT EXISTS vector")
            execute(f"DROP TABLE IF EXISTS {table}")
            execute(
                f"CREATE TABLE {table} (slot bigint PRIMARY KEY, embedding {store._type}({dimensions:d}))"
            )
        store._commit()
        return store

    @classmethod
    def open(
        cls, address: PostgresAddress, table: str, *, dimensions: int, dtype: VectorType
    ) -> Self:
        """Open an existing table.

        Raises:
            VectorIndexUnavailable: the server cannot be reached.
            DamagedVectors: there is no such table.
        """
        store = cls(address, table, dimensions=dimensions, dtype=dtype)
        if tables_of(address, table) != [table]:
            raise DamagedVectors(f"the database has no table {table}")
        return store

    @property
    def rows(self) -> int:
        """See `VectorIndex`."""
        with self._reading() as execute:
            ((last,),) = execute(f"SELECT max(slot) FROM {self.table}")
        return 0 if last is None else int(last) + 1

    def append(self, vectors: NDArray[np.float32]) -> range:
        """See `VectorIndex`."""
        first = self.rows
        slots = range(first, first + len(vectors))
        self._copy_in(self.table, np.arange(slots.start, slots.stop), vectors)
        return slots

    def append_copies(self, source: Self, slots: NDArray[np.int64]) -> range:
        """See `VectorIndex`; the vectors do not leave the server."""
        first = self.rows
        with self._executing() as execute:
            execute(
                f"INSERT INTO {self.table} SELECT {first:d} + place - 1, embedding FROM {source.table} "
                "JOIN unnest(CAST(%s AS bigint[])) WITH ORDINALITY AS wanted (slot, place) USING (slot)",
                (slots.tolist(),),
            )
        return range(first, first + len(slots))

    def write(self, slots: NDArray[np.int64], vectors: NDArray[np.float32]) -> None:
        """See `VectorIndex`."""
        with self._executing() as execute:
            execute(
                f"DELETE FROM {self.table} WHERE slot = ANY(CAST(%s AS bigint[]))",
                (slots.tolist(),),
            )
        self._copy_in(self.table, slots, vectors)

    def sync(self) -> None:
        """See `VectorIndex`: commit, and rewrite the table if vectors were cleared."""
        self._commit()
        if self._cleared:
            with self._reading() as execute:
                execute(f"VACUUM (FULL) {self.table}")
            self._cleared = False

    def clear(self, slots: NDArray[np.int64]) -> None:
        """See `VectorIndex`."""
        with self._executing() as execute:
            execute(
                f"UPDATE {self.table} SET embedding = NULL WHERE slot = ANY(CAST(%s AS bigint[]))",
                (slots.tolist(),),
            )
        self._cleared = True

    def truncate(self, rows: int) -> None:
        """See `VectorIndex`; commits."""
        with self._executing() as execute:
            execute(f"DELETE FROM {self.table} WHERE slot >= %s", (rows,))
        self._commit()

    def maintain(self, live: int) -> None:
        """See `VectorIndex`: refresh the planner's statistics."""
        self._commit()
        with self._reading() as execute:
            execute(f"ANALYZE {self.table}")

    def read(self, slots: NDArray[np.int64]) -> NDArray[np.float32]:
        """See `VectorIndex`."""
        wanted = ",".join(map(str, np.asarray(slots, np.int64).tolist()))
        found, vectors = self._copy_out(
            f"SELECT slot, embedding FROM {self.table} "
            f"WHERE slot = ANY('{{{wanted}}}'::bigint[]) AND embedding IS NOT NULL ORDER BY slot"
        )
        result = np.zeros((len(slots), self.dimensions), np.float32)
        if len(found):
            at = np.minimum(np.searchsorted(found, slots), len(found) - 1)
            present = found[at] == slots
            result[present] = vectors[at[present]]
        return result

    def search(
        self, queries: NDArray[np.float32], k: int, *, allowed: NDArray[np.bool_] | None = None
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """See `VectorIndex`."""
        if (
            queries.ndim != 2
            or queries.shape[1] != self.dimensions
            or not np.isfinite(queries).all()
        ):
            raise InvalidRequest(f"Queries must be finite and have {self.dimensions} dimensions.")
        slots = np.full((len(queries), k), -1, np.int64)
        scores = np.full((len(queries), k), -np.inf, np.float32)
        condition = "" if allowed is None else f"AND slot <@ '{_ranges(allowed)}'::int8multirange"
        for number, query in enumerate(queries):
            with self._reading() as execute:
                found = execute(
                    f"SELECT slot, (embedding::vector <#> CAST(%s AS vector)) AS distance "
                    f"FROM {self.table} WHERE embedding IS NOT NULL {condition} "
                    "ORDER BY distance, slot LIMIT %s",
                    (_text(query), k),
                )
            for place, (slot, distance) in enumerate(found):
                slots[number, place], scores[number, place] = slot, -distance
        return slots, scores

    def close(self) -> None:
        """See `VectorIndex`."""
        with self._lock:
            connection, self._connection = self._connection, None
            self._in_transaction = False
        if connection is not None:
            _close(connection)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _copy_in(self, table: str, slots: NDArray[np.int64], vectors: NDArray[np.float32]) -> None:
        if (
            vectors.ndim != 2
            or vectors.shape[1] != self.dimensions
            or not np.isfinite(vectors).all()
        ):
            raise InvalidRequest(f"Vectors must be finite and have {self.dimensions} dimensions.")
        rows = np.zeros(len(slots), self._row)
        rows["fields"], rows["slot_bytes"], rows["slot"] = 2, 8, slots
        rows["vector_bytes"] = 4 + rows["vector"].dtype.itemsize * self.dimensions
        rows["dimensions"], rows["vector"] = self.dimensions, vectors
        data = io.BytesIO(_COPY_HEADER + rows.tobytes() + _COPY_END)
        with self._cursor() as cursor:
            self._begin(cursor)
            cursor.execute(f"COPY {table} FROM STDIN (FORMAT binary)", stream=data)

    def _copy_out(self, query: str) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Slots and vectors of a query whose rows all have a vector."""
        data = io.BytesIO()
        with self._cursor() as cursor:
            cursor.execute(f"COPY ({query}) TO STDOUT (FORMAT binary)", stream=data)
        body = data.getvalue()[len(_COPY_HEADER) : -len(_COPY_END)]
        rows = np.frombuffer(body, self._row)
        return rows["slot"].astype(np.int64), rows["vector"].astype(np.float32)

    @property
    def _row(self) -> np.dtype[np.void]:
        """A row of a binary copy: two fields, each after its length."""
        return np.dtype(
            [
                ("fields", ">i2"), ("slot_bytes", ">i4"), ("slot", ">i8"), ("vector_bytes", ">i4"),
                ("dimensions", ">i2"), ("unused", ">i2"), ("vector", self._element, (self.dimensions,)),
            ]
        )  # fmt: skip

    def _commit(self) -> None:
        with self._cursor() as cursor:
            if self._in_transaction:
                cursor.execute("COMMIT")
                self._in_transaction = False

    @contextmanager
    def _reading(self) -> "Iterator[Any]":
        """As `_executing`, but it begins no transaction, which would hold locks."""
        with self._cursor() as cursor:
            yield _executor(cursor)

    @contextmanager
    def _executing(self) -> "Iterator[Any]":
        """A function that executes a statement and returns its rows, within the transaction of the writer."""
        with self._cursor() as cursor:
            self._begin(cursor)
            yield _executor(cursor)

    def _begin(self, cursor: Any) -> None:
        if not self._in_transaction:
            cursor.execute("BEGIN")
            self._in_transaction = True

    @contextmanager
    def _cursor(self) -> "Iterator[Any]":
        with self._lock:
            if self._connection is None:
                self._connection = connect(self._address)
            with _errors(self._address):
                try:
                    yield self._connection.cursor()
                except BaseException:
                    self.close()  # the next statement connects again
                    raise


def _executor(cursor: Any) -> "Callable[..., list[Any]]":
    def execute(statement: str, parameters: tuple[object, ...] = ()) -> list[Any]:
        cursor.execute(statement, parameters)
        return list(cursor.fetchall()) if cursor.description else []

    return execute


def connect(address: PostgresAddress) -> "Connection":
    """A connection to a database.

    Raises:
        VectorIndexUnavailable: pg8000 is not installed, or the server cannot be reached or refuses.
    """
    try:
        import pg8000.dbapi
    except ImportError as error:
        raise VectorIndexUnavailable(
            "PostgreSQL needs pg8000: install it with `pip install 'pravaha[pgvector]'`."
        ) from error
    place: dict[str, object] = {"host": address.host, "port": address.port}
    if address.host.startswith("/"):
        place = {"unix_sock": f"{address.host}/.s.PGSQL.{address.port}"}
    with _errors(address):
        connection: Connection = pg8000.dbapi.connect(
            address.user,
            password=address.password,
            database=address.database,
            ssl_context=address.ssl_context,
            timeout=_TIMEOUT_S,
            application_name="pravaha",
            **place,
        )
        connection.autocommit = True
        return connection


def tables_of(address: PostgresAddress, prefix: str) -> list[str]:
    """Names of the tables that begin with a prefix."""
    return [one for (one,) in _once(address, _TABLES, (f"{prefix.replace('_', chr(92) + '_')}%",))]


def drop_table(address: PostgresAddress, table: str) -> None:
    """Drop a table, if there is one."""
    _once(address, f"DROP TABLE IF EXISTS {table}", ())


def check_server(address: PostgresAddress) -> None:
    """Check that vectors can be kept there.

    Raises:
        VectorIndexUnavailable: the server cannot be reached, or has no pgvector.
    """
    _once(address, "CREATE EXTENSION IF NOT EXISTS vector", ())


_TABLES = (
    "SELECT relname FROM pg_class WHERE relkind = 'r' AND relname LIKE %s "
    "AND pg_table_is_visible(oid) ORDER BY relname"
)


def _once(address: PostgresAddress, statement: str, parameters: tuple[object, ...]) -> list[Any]:
    connection = connect(address)
    try:
        with _errors(address):
            return _executor(connection.cursor())(statement, parameters)
    finally:
        _close(connection)


@contextmanager
def _errors(address: PostgresAddress) -> Iterator[None]:
    """Turn errors of the driver and of the network into one sentence."""
    from pg8000.exceptions import Error

    try:
        yield
    except (Error, OSError, struct.error) as error:
        where = f"{address.database} at {address.host}"
        raise VectorIndexUnavailable(
            f"The PostgreSQL database {where} cannot be used: {_reason(error)}."
        ) from error


def _reason(error: Exception) -> str:
    """The server's message, which pg8000 has in a dictionary."""
    details = error.args[0] if error.args else None
    message = (
        str(details["M"]) if isinstance(details, dict) and "M" in details else first_line(error)
    )
    return message.rstrip(".")


def _close(connection: "Connection") -> None:
    from pg8000.exceptions import Error

    try:
        connection.close()
    except (Error, OSError, struct.error):
        pass  # the server has closed it


def _ranges(allowed: NDArray[np.bool_]) -> str:
    """The allowed slots as a multirange: half-open ranges."""
    edges = np.diff(np.concatenate(([False], allowed, [False])).astype(np.int8))
    starts, ends = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)
    return "{" + ",".join(f"[{a},{b})" for a, b in zip(starts, ends, strict=True)) + "}"


def _text(vector: NDArray[np.float32]) -> str:
    return "[" + ",".join(map(repr, vector.astype(float).tolist())) + "]"
