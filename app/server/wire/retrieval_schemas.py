"""Pydantic schemas of vector stores and retrieval (OpenAI's shape) and of reranking (Cohere's and Jina's)."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints

from app.server.wire.body import Body, IsOff, nothing
from app.server.wire.generation_fields import OF_THE_CALLER
from app.server.wire.keep_alive import KeepAlive

FILE_KEY = "file"
"""Key of a filter whose value is the id of a file."""
MAX_PAIRS = 16
MAX_KEY_CHARS = 64
MAX_VALUE_CHARS = 512
MAX_NAME_CHARS = 256
MAX_BATCH_FILES = 2000
MAX_EXPIRY_DAYS = 365
MAX_RESULTS = 50
MAX_QUERIES = 8
MAX_QUERY_CHARS = 4096
MAX_SEARCHED_STORES = 8
MAX_RERANKED = 1000
MIN_LIFETIME_S, MAX_LIFETIME_S = 3600, 30 * 86_400
"""Seconds until an uploaded file expires."""
MAX_UPLOAD_PARTS = 1000

ObjectId = Annotated[str, StringConstraints(min_length=1, max_length=128)]
_Key = Annotated[str, StringConstraints(min_length=1, max_length=MAX_KEY_CHARS)]
_Value = Annotated[str, StringConstraints(max_length=MAX_VALUE_CHARS)]


def _not_reserved(attributes: dict[str, Any]) -> dict[str, Any]:
    if FILE_KEY in attributes:
        raise ValueError(
            f"no attribute may be named {FILE_KEY!r}: filters compare it with files' ids"
        )
    return attributes


Metadata = Annotated[dict[_Key, _Value], Field(max_length=MAX_PAIRS)]
Attributes = Annotated[
    dict[_Key, _Value | bool | int | float],
    Field(max_length=MAX_PAIRS),
    AfterValidator(_not_reserved),
]
_Name = Annotated[str, StringConstraints(max_length=MAX_NAME_CHARS)]
_Query = Annotated[str, StringConstraints(min_length=1, max_length=MAX_QUERY_CHARS)]


class ExpiresAfter(Body):
    """When a vector store expires."""

    anchor: Literal["last_active_at"]
    """Counted from the last search or change."""
    days: Annotated[int, Field(ge=1, le=MAX_EXPIRY_DAYS)]
    """Days until the contents are erased."""


class FileExpiresAfter(Body):
    """When an uploaded file expires."""

    anchor: Literal["created_at"]
    """Counted from the upload."""
    seconds: Annotated[int, Field(ge=MIN_LIFETIME_S, le=MAX_LIFETIME_S)]
    """Seconds until the file is deleted."""


class CreateUpload(Body):
    """Body of `POST /v1/uploads`. `mime_type` is not looked at: types are found by contents and names."""

    bytes: Annotated[int, Field(ge=1)]
    """Size of the file."""
    filename: Annotated[str, StringConstraints(min_length=1, max_length=MAX_VALUE_CHARS)]
    """Its name; of it only the ending is used."""
    mime_type: Annotated[str, StringConstraints(max_length=MAX_VALUE_CHARS)]
    """Not looked at: types are found by contents and names."""
    purpose: Annotated[str, StringConstraints(max_length=MAX_KEY_CHARS)]
    """`assistants`, `user_data` or `vision`."""
    expires_after: FileExpiresAfter | None = None
    """When the file expires."""


class CompleteUpload(Body):
    """Body of `POST /v1/uploads/{id}/complete`."""

    part_ids: Annotated[list[ObjectId], Field(min_length=1, max_length=MAX_UPLOAD_PARTS)]
    """The parts, in order."""
    md5: Annotated[str, StringConstraints(pattern=r"^[0-9a-fA-F]{32}$")] | None = None
    """Checksum of the file."""


class StaticChunking(Body):
    """Sizes of chunks in tokens of the embedding model."""

    max_chunk_size_tokens: Annotated[int, Field(ge=1, le=4096)]
    """Only 256."""
    chunk_overlap_tokens: Annotated[int, Field(ge=0, le=2048)]
    """Only 32."""


class ChunkingStrategy(Body):
    """How files are cut into chunks."""

    type: Literal["auto", "static"]
    """`auto`, or `static` with the sizes that there are."""
    static: StaticChunking | None = None
    """Sizes of chunks."""


class CreateVectorStore(Body):
    """Body of `POST /v1/vector_stores`."""

    name: _Name | None = None
    """Its name."""
    description: Annotated[str, StringConstraints(max_length=MAX_VALUE_CHARS)] | None = None
    """What it is for."""
    file_ids: Annotated[list[ObjectId], Field(max_length=MAX_BATCH_FILES)] | None = None
    """Files to add."""
    expires_after: ExpiresAfter | None = None
    """When its contents are erased."""
    chunking_strategy: ChunkingStrategy | None = None
    """How the files are cut; one way is built in."""
    metadata: Metadata | None = None
    """The caller's own notes."""


class ModifyVectorStore(Body):
    """Body of `POST /v1/vector_stores/{id}`; what is left out stays, and null clears."""

    name: _Name | None = None
    """The new name."""
    expires_after: ExpiresAfter | None = None
    """When its contents are erased."""
    metadata: Metadata | None = None
    """The new notes."""


class CreateStoreFile(Body):
    """Body of `POST /v1/vector_stores/{id}/files`, and an item of a batch."""

    file_id: ObjectId
    """The file."""
    attributes: Attributes | None = None
    """Values that filters compare with."""
    chunking_strategy: ChunkingStrategy | None = None
    """How the file is cut; one way is built in."""


class UpdateStoreFile(Body):
    """Body of `POST /v1/vector_stores/{id}/files/{file_id}`."""

    attributes: Attributes | None
    """The new values."""


class CreateFileBatch(Body):
    """Body of `POST /v1/vector_stores/{id}/file_batches`: either `file_ids` or `files`."""

    file_ids: Annotated[list[ObjectId], Field(min_length=1, max_length=MAX_BATCH_FILES)] | None = (
        None
    )
    """Files to add."""
    files: (
        Annotated[list[CreateStoreFile], Field(min_length=1, max_length=MAX_BATCH_FILES)] | None
    ) = None
    """Files to add, each with its own attributes."""
    attributes: Attributes | None = None
    """Values that filters compare with."""
    chunking_strategy: ChunkingStrategy | None = None
    """How the files are cut; one way is built in."""


class EmptyBody(Body):
    """Body of calls that need none."""


class HybridSearch(Body):
    """Weights of the two searches."""

    embedding_weight: float
    """Refused: the weights are fixed."""
    text_weight: float
    """Refused: the weights are fixed."""


class RankingOptions(Body):
    """How results are ordered and which are left out."""

    ranker: Annotated[str, StringConstraints(max_length=64)] | None = None
    """`auto` or `none`."""
    score_threshold: Annotated[float, Field(ge=0, le=1)] | None = None
    """Leave out results below this score."""
    hybrid_search: HybridSearch | None = None
    """Refused: the weights are fixed."""


def _one_or_many(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


class SearchFields(Body):
    """Fields that a search and retrieval in a chat share."""

    filters: dict[str, Any] | None = None
    """Conditions on attributes."""
    max_num_results: Annotated[int, Field(ge=1, le=MAX_RESULTS)] | None = None
    """Most results."""
    ranking_options: RankingOptions | None = None
    """Order of the results and the score that they need."""
    rewrite_query: bool | None = None
    """True is refused in a search; false in a chat searches for the last question alone."""


_Queries = Annotated[list[_Query], Field(min_length=1, max_length=MAX_QUERIES)]


class SearchVectorStore(SearchFields):
    """Body of `POST /v1/vector_stores/{id}/search`."""

    query: Annotated[
        list[_Query],
        BeforeValidator(_one_or_many, json_schema_input_type=_Query | _Queries),
        Field(min_length=1, max_length=MAX_QUERIES),
    ]
    """A text, or several whose results are fused."""


class ChatRetrieval(SearchFields):
    """`retrieval` of a chat: where to look for passages that the answer is to cite."""

    vector_store_ids: Annotated[list[ObjectId], Field(min_length=1, max_length=MAX_SEARCHED_STORES)]
    """Where to search."""
    query: _Query | None = None
    """What to search for; the last message without it."""
    previous_chunk_ids: Annotated[list[int], Field(max_length=MAX_RESULTS)] | None = None
    """Chunks of the last answer, which keep their places."""
    min_evidence: Annotated[float, Field(ge=-1, le=1)] | None = None
    """How close a passage must be to the question."""


class TextDocument(Body):
    """A document as an object; members beside its text are the client's own."""

    keeps_unknown: ClassVar[bool] = True

    text: str
    """The text."""


def _as_documents(value: Any) -> Any:
    """Texts, and objects with a text, as objects."""
    if not isinstance(value, list):
        raise ValueError("must be a list of texts, or of objects with a `text`")
    return [{"text": one} if isinstance(one, str) else one for one in value]


_Documents = Annotated[list[str | TextDocument], Field(min_length=1, max_length=MAX_RERANKED)]


class RerankRequest(Body):
    """Body of `POST /v1/rerank`."""

    without_effect: ClassVar[Mapping[str, str]] = OF_THE_CALLER
    unsupported: ClassVar[Mapping[str, IsOff]] = {
        "max_chunks_per_doc": nothing,  # all chunks are read
        "max_tokens_per_doc": nothing,
        "rank_fields": nothing,
        "truncate_prompt_tokens": nothing,
    }

    model: Annotated[str, StringConstraints(min_length=1, max_length=256)]
    """Name or alias of the embedding model."""
    query: Annotated[str, StringConstraints(min_length=1)]
    """What the documents are to fit."""
    documents: Annotated[
        list[TextDocument],
        BeforeValidator(_as_documents, json_schema_input_type=_Documents),
        Field(min_length=1, max_length=MAX_RERANKED),
    ]
    """Texts, or objects with a `text`."""
    top_n: Annotated[int, Field(ge=1)] | None = None
    """Give the best so many."""
    return_documents: bool | None = None
    """False leaves the texts out."""
    keep_alive: KeepAlive | None = None
    """How long the model stays loaded after this request: seconds, or a duration such as `5m`."""
