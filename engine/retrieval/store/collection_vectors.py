"""The vectors of a collection: where they are, and which of several files or tables counts.

The database says how often they were rewritten, and that number is in the name of the file or table. One of
another number belongs to no commit: a crash or a rewriting has left it, and the next writer deletes it.
Readers that have it open go on with it.
"""

import re
import shutil

from engine.api.error_text import first_line
from engine.retrieval.store.errors import RetrievalStoreError
from engine.retrieval.store.records import CollectionRecord
from engine.retrieval.store.store import FILES, Store
from engine.retrieval.vectors.errors import DamagedVectors
from engine.retrieval.vectors.hnsw_vectors import MIN_ROWS, HnswVectors
from engine.retrieval.vectors.postgres_address import PostgresAddress, postgres_address
from engine.retrieval.vectors.postgres_vectors import PostgresVectors, drop_table, tables_of
from engine.retrieval.vectors.vector_file import VectorFile
from engine.retrieval.vectors.vector_index import VectorIndex

_NAME = re.compile(r"(\d+)(?:-(\d+))?\.(?:vectors|hnsw|hnsw\.json)")
_UNFINISHED = "*.hnsw*.new"


def create_vectors(
    store: Store, record: CollectionRecord, *, rewrites: int, dimensions: int
) -> VectorIndex:
    """Create the vectors of a collection, without rows. What a crash has left under this number goes.

    Raises:
        OSError: the file cannot be written.
        VectorIndexUnavailable: the server cannot be reached.
    """
    if record.vector_store == "pgvector":
        return PostgresVectors.create(
            _address(record),
            _table(record, rewrites),
            dimensions=dimensions,
            dtype=record.vector_type,
        )
    path = store.vector_path(record.id, rewrites)
    path.unlink(missing_ok=True)
    return _with_index(record, VectorFile.create(path, dimensions, record.vector_type))


def open_vectors(store: Store, record: CollectionRecord, *, rewrites: int) -> VectorIndex:
    """The vectors of a collection that has some, after so many rewrites.

    Raises:
        RetrievalStoreError: they are missing or damaged.
        VectorIndexUnavailable: the server cannot be reached.
    """
    path = store.vector_path(record.id, rewrites)
    try:
        if record.vector_store == "pgvector":
            return PostgresVectors.open(
                _address(record),
                _table(record, rewrites),
                dimensions=record.dimensions or 0,
                dtype=record.vector_type,
            )
        file = VectorFile.open(path)
    except (OSError, DamagedVectors) as error:
        raise lost_vectors(record, first_line(error)) from error
    if (file.dimensions, file.dtype) == (record.dimensions, record.vector_type):
        return _with_index(record, file)
    file.close()
    raise lost_vectors(record, f"{path} has vectors of another length or type")


def lost_vectors(record: CollectionRecord, reason: str) -> RetrievalStoreError:
    """The error of a collection whose vectors cannot be used."""
    return RetrievalStoreError(
        f"The vectors of {record.name} cannot be read ({reason}): `pravaha rag doctor {record.name}` "
        "computes them anew; searches by words (`--mode lexical`) work meanwhile."
    )


def delete_unused_files(store: Store) -> None:
    """Delete what crashes have left: vector files of no commit, and files of removed collections.

    The caller is the writer.
    """
    records = store.collections()
    current = {one.id: one.rewrites for one in records if one.dimensions is not None}
    for path in store.directory.iterdir():
        name = _NAME.fullmatch(path.name)
        if name is not None and current.get(int(name[1])) != int(name[2] or 0):
            path.unlink(missing_ok=True)
    for path in store.directory.glob(_UNFINISHED):
        path.unlink(missing_ok=True)
    known = {str(one.id) for one in records}
    for folder in (store.directory / FILES).glob("*"):
        if folder.name not in known:
            shutil.rmtree(folder, ignore_errors=True)


def delete_unused_tables(record: CollectionRecord, *, all_of_them: bool = False) -> None:
    """Drop the tables of a collection that belong to no commit, or all; nothing where vectors are in a file.

    Raises:
        VectorIndexUnavailable: the server cannot be reached.
    """
    if record.vector_store != "pgvector":
        return
    address = _address(record)
    used = None if all_of_them or record.dimensions is None else _table(record, record.rewrites)
    for table in tables_of(address, f"{record.vector_table}_"):
        if table != used:
            drop_table(address, table)


def _with_index(record: CollectionRecord, file: VectorFile) -> VectorIndex:
    if record.vector_store == "exact":
        return file
    return HnswVectors(file, min_rows=0 if record.vector_store == "hnsw" else MIN_ROWS)


def _address(record: CollectionRecord) -> PostgresAddress:
    return postgres_address(record.dsn_env or "")


def _table(record: CollectionRecord, rewrites: int) -> str:
    return f"{record.vector_table}_{rewrites:d}"
