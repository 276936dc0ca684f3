"""Pydantic schemas of vector stores and retrieval (OpenAI's shape) and of reranking (Cohere's and Jina's)."""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints

from app.server.wire.body import Body
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
    days: Annotated[int, Field(ge=1, le=MAX_EXPIRY_DAYS)]


class FileExpiresAfter(Body):
    """When an uploaded file expires."""

    anchor: Literal["created_at"]
    seconds: Annotated[int, Field(ge=MIN_LIFETIME_S, le=MAX_LIFETIME_S)]


class CreateUpload(Body):
    """Body of `POST /v1/uploads`. `mime_type` is not looked at: types are found by contents and names."""

    bytes: Annotated[int, Field(ge=1)]
    filename: Annotated[str, StringConstraints(min_length=1, max_length=MAX_VALUE_CHARS)]
    mime_type: Annotated[str, StringConstraints(max_length=MAX_VALUE_CHARS)]
    purpose: Annotated[str, StringConstraints(max_length=MAX_KEY_CHARS)]
    expires_after: FileExpiresAfter | None = None


class CompleteUpload(Body):
    """Body of `POST /v1/uploads/{id}/complete`."""

    part_ids: Annotated[list[ObjectId], Field(min_length=1, max_length=MAX_UPLOAD_PARTS)]
    md5: Annotated[str, StringConstraints(pattern=r"^[0-9a-fA-F]{32}$")] | None = None


class StaticChunking(Body):
    """Sizes of chunks in tokens of the embedding model."""

    max_chunk_size_tokens: Annotated[int, Field(ge=1, le=4096)]
    chunk_overlap_tokens: Annotated[int, Field(ge=0, le=2048)]


class ChunkingStrategy(Body):
    """How files are cut into chunks."""

    type: Literal["auto", "static"]
    static: StaticChunking | None = None


class CreateVectorStore(Body):
    """Body of `POST /v1/vector_stores`."""

    name: _Name | None = None
    description: Annotated[str, StringConstraints(max_length=MAX_VALUE_CHARS)] | None = None
    file_ids: Annotated[list[ObjectId], Field(max_length=MAX_BATCH_FILES)] | None = None
    expires_after: ExpiresAfter | None = None
    chunking_strategy: ChunkingStrategy | None = None
    metadata: Metadata | None = None


class ModifyVectorStore(Body):
    """Body of `POST /v1/vector_stores/{id}`; what is left out stays, and null clears."""

    name: _Name | None = None
    expires_after: ExpiresAfter | None = None
    metadata: Metadata | None = None


class CreateStoreFile(Body):
    """Body of `POST /v1/vector_stores/{id}/files`, and an item of a batch."""

    file_id: ObjectId
    attributes: Attributes | None = None
    chunking_strategy: ChunkingStrategy | None = None


class UpdateStoreFile(Body):
    """Body of `POST /v1/vector_stores/{id}/files/{file_id}`."""

    attributes: Attributes | None


class CreateFileBatch(Body):
    """Body of `POST /v1/vector_stores/{id}/file_batches`: either `file_ids` or `files`."""

    file_ids: Annotated[list[ObjectId], Field(min_length=1, max_length=MAX_BATCH_FILES)] | None = (
        None
    )
    files: (
        Annotated[list[CreateStoreFile], Field(min_length=1, max_length=MAX_BATCH_FILES)] | None
    ) = None
    attributes: Attributes | None = None
    chunking_strategy: ChunkingStrategy | None = None


class EmptyBody(Body):
    """Body of calls that need none."""


class HybridSearch(Body):
    """Weights of the two searches."""

    embedding_weight: float
    text_weight: float


class RankingOptions(Body):
    """How results are ordered and which are left out."""

    ranker: Annotated[str, StringConstraints(max_length=64)] | None = None
    score_threshold: Annotated[float, Field(ge=0, le=1)] | None = None
    hybrid_search: HybridSearch | None = None


def _one_or_many(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


class SearchFields(Body):
    """Fields that a search and retrieval in a chat share."""

    filters: dict[str, Any] | None = None
    max_num_results: Annotated[int, Field(ge=1, le=MAX_RESULTS)] | None = None
    ranking_options: RankingOptions | None = None
    rewrite_query: bool | None = None


class SearchVectorStore(SearchFields):
    """Body of `POST /v1/vector_stores/{id}/search`."""

    query: Annotated[
        list[_Query], BeforeValidator(_one_or_many), Field(min_length=1, max_length=MAX_QUERIES)
    ]


class ChatRetrieval(SearchFields):
    """`retrieval` of a chat: where to look for passages that the answer is to cite."""

    vector_store_ids: Annotated[list[ObjectId], Field(min_length=1, max_length=MAX_SEARCHED_STORES)]
    query: _Query | None = None
    previous_chunk_ids: Annotated[list[int], Field(max_length=MAX_RESULTS)] | None = None
    min_evidence: Annotated[float, Field(ge=-1, le=1)] | None = None


class TextDocument(Body):
    """A document as an object; members beside its text are the client's own."""

    keeps_unknown: ClassVar[bool] = True

    text: str


def _as_documents(value: Any) -> Any:
    """Texts, and objects with a text, as objects."""
    if not isinstance(value, list):
        raise ValueError("must be a list of texts, or of objects with a `text`")
    return [{"text": one} if isinstance(one, str) else one for one in value]


class RerankRequest(Body):
    """Body of `POST /v1/rerank`."""

    model: Annotated[str, StringConstraints(min_length=1, max_length=256)]
    query: Annotated[str, StringConstraints(min_length=1)]
    documents: Annotated[
        list[TextDocument],
        BeforeValidator(_as_documents),
        Field(min_length=1, max_length=MAX_RERANKED),
    ]
    top_n: Annotated[int, Field(ge=1)] | None = None
    return_documents: bool | None = None
    keep_alive: KeepAlive | None = None
