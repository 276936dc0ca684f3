"""Whether the vectors of a new collection can be kept where they are asked for."""

from engine.api.errors import InvalidRequest
from engine.retrieval.vectors.header import VectorType
from engine.retrieval.vectors.hnsw_vectors import is_available
from engine.retrieval.vectors.postgres_address import postgres_address
from engine.retrieval.vectors.postgres_vectors import check_server
from engine.retrieval.vectors.vector_index import StoreKind


def check_vector_index(kind: StoreKind, vector_type: VectorType, dsn_env: str | None) -> None:
    """Check a choice before anything is created.

    Raises:
        InvalidRequest: something is missing, or does not go together.
        VectorIndexUnavailable: the database server cannot be reached, or has no pgvector.
    """
    if kind != "pgvector":
        if dsn_env is not None:
            raise InvalidRequest(
                f"Only pgvector has a database address, not {kind}.", param="dsn_env"
            )
        if kind == "hnsw" and not is_available():
            raise InvalidRequest(
                "hnsw needs usearch: install it with `pip install 'pravaha[hnsw]'`.",
                param="vector_store",
            )
        return
    if vector_type == "int8":
        raise InvalidRequest("pgvector stores f16 and f32, not int8.", param="vector_type")
    if not dsn_env:
        raise InvalidRequest(
            "pgvector needs the name of the environment variable that has the URL of the database.",
            param="dsn_env",
        )
    check_server(postgres_address(dsn_env))
