"""Searches vector stores: the ids and files of the API for the collections and paths of the library."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Any

from app.server.retrieval.records import AttributeValue, UploadedFile
from app.server.retrieval.service import RetrievalService
from app.server.wire.retrieval_schemas import FILE_KEY
from engine.api.errors import InvalidRequest
from engine.retrieval.api.passage import Passage
from engine.retrieval.library.collection import Collection
from engine.retrieval.library.search_across import (
    FoundPassage,
    Order,
    mentions_across,
    search_across,
)
from engine.retrieval.store.filters import Where

_MAX_DEPTH = 16


@dataclass(frozen=True, slots=True)
class Found:
    """A passage that was found.

    Attributes:
        store_id: the vector store.
        file: the file that it is from.
        passage: the passage; its `file` is a path of this machine, which no client is told.
        score: how well it fits, from 0 to 1; see `FoundPassage`.
        attributes: those of the file in this vector store.
    """

    store_id: str
    file: UploadedFile
    passage: Passage
    score: float
    attributes: dict[str, AttributeValue]

    @property
    def named_passage(self) -> Passage:
        """The passage under the name that its file has for clients."""
        return replace(self.passage, file=self.file.filename)


def search_stores(
    service: RetrievalService,
    store_ids: Sequence[str],
    queries: Sequence[str],
    *,
    k: int,
    where: Mapping[str, Any] | None = None,
    min_score: float = 0.0,
    order: Order = "rank",
) -> list[Found]:
    """The passages that fit best, best first in an order of `search_across`; at most `k`. Blocks.

    Raises:
        NoSuchObject: there is no such vector store.
        StoreExpired: one has expired.
        EmbeddingModelMissing: the embedding model is not installed.
        InvalidRequest: the filter is malformed.
        PravahaError: the library or the embedding model cannot be used.
    """
    service.require_embedder()
    parts = service.open()
    for store_id in store_ids:
        parts.catalogue.touch_store(store_id)
    found = search_across(_collections(service, store_ids, where), queries, k=k, order=order)
    files = {
        store_id: parts.catalogue.searchable_files(
            store_id, [_file_id(one) for one in found if one.collection.name == store_id]
        )
        for store_id in store_ids
    }
    return [
        Found(one.collection.name, it.file, one.passage, one.score, it.attributes)
        for one in found
        if one.score >= min_score
        and (it := files[one.collection.name].get(_file_id(one))) is not None
    ][:k]


def mentioned(
    service: RetrievalService,
    store_ids: Sequence[str],
    words: str,
    *,
    where: Mapping[str, Any] | None = None,
) -> bool:
    """Whether a file in one of the vector stores has one of the words. Blocks.

    Raises:
        InvalidRequest: the filter is malformed.
        PravahaError: the library cannot be used.
    """
    return mentions_across(_collections(service, store_ids, where), words)


def _collections(
    service: RetrievalService, store_ids: Sequence[str], where: Mapping[str, Any] | None
) -> dict[Collection, Where | None]:
    """The collections of vector stores, each with the filter; a store has none before its first file."""
    condition = None if where is None else _by_path(where, service)
    found = map(service.open().library.find, store_ids)
    return {one: condition for one in found if one is not None}


def _file_id(found: FoundPassage) -> str:
    return PurePath(found.passage.file).name.partition(".")[0]


def _by_path(where: Mapping[str, Any], service: RetrievalService, depth: int = 0) -> dict[str, Any]:
    """A filter with the paths of files in place of their ids.

    Raises:
        InvalidRequest: it is nested too deep, or compares a file with something else than an id.
    """
    if depth > _MAX_DEPTH:
        raise InvalidRequest(f"The filter is nested more than {_MAX_DEPTH} deep.", param="filters")
    given = dict(where)
    parts = given.get("filters")
    if isinstance(parts, list):
        given["filters"] = [
            _by_path(one, service, depth + 1) if isinstance(one, dict) else one for one in parts
        ]
    if given.get("key") == FILE_KEY:
        if given.get("type") not in ("eq", "ne", "in", "nin"):
            raise InvalidRequest(
                "A file can only be compared by eq, ne, in and nin.", param="filters"
            )
        value = given.get("value")
        given["value"] = (
            [_path(one, service) for one in value]
            if isinstance(value, list)
            else _path(value, service)
        )
    return given


def _path(value: object, service: RetrievalService) -> str:
    if not isinstance(value, str):
        raise InvalidRequest("A file is compared with the id of a file.", param="filters")
    parts = service.open()
    return str(parts.folder.path(parts.catalogue.file(value)))
