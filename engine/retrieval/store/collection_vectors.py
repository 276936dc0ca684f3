"""The vectors of a collection: where they are, and which of several files counts.

The database says how often they were rewritten, and that number is in the name of the file. A file of another
number belongs to no commit: a crash has left it, and the next writer deletes it. Readers that have it open
go on with it.
"""

import re
import shutil

from engine.api.error_text import first_line
from engine.retrieval.store.errors import RetrievalStoreError
from engine.retrieval.store.records import CollectionRecord
from engine.retrieval.store.store import FILES, Store
from engine.retrieval.vectors.errors import DamagedVectors
from engine.retrieval.vectors.vector_file import VectorFile

_NAME = re.compile(r"(\d+)(?:-(\d+))?\.vectors")


def create_vectors(
    store: Store, record: CollectionRecord, *, rewrites: int, dimensions: int
) -> VectorFile:
    """Create the vectors of a collection, without rows. A file of this name that a crash has left goes.

    Raises:
        OSError: the file cannot be written.
    """
    path = store.vector_path(record.id, rewrites)
    path.unlink(missing_ok=True)
    return VectorFile.create(path, dimensions, record.vector_type)


def open_vectors(store: Store, record: CollectionRecord, *, rewrites: int) -> VectorFile:
    """The vectors of a collection that has some, after so many rewrites.

    Raises:
        RetrievalStoreError: they are missing or damaged.
    """
    path = store.vector_path(record.id, rewrites)
    try:
        file = VectorFile.open(path)
    except (OSError, DamagedVectors) as error:
        raise lost_vectors(record, first_line(error)) from error
    if (file.dimensions, file.dtype) == (record.dimensions, record.vector_type):
        return file
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
    current = {one.id: one.rewrites for one in store.collections() if one.dimensions is not None}
    for path in store.directory.glob("*.vectors"):
        name = _NAME.fullmatch(path.name)
        if name is not None and current.get(int(name[1])) != int(name[2] or 0):
            path.unlink(missing_ok=True)
    known = {str(one.id) for one in store.collections()}
    for folder in (store.directory / FILES).glob("*"):
        if folder.name not in known:
            shutil.rmtree(folder, ignore_errors=True)
