"""Which chunking strategies can be had: that of the collections, by either of its names."""

from typing import Any

from app.server.wire.errors import bad_request
from app.server.wire.retrieval_schemas import ChunkingStrategy

MAX_TOKENS = 256
OVERLAP_TOKENS = 32

STRATEGY: dict[str, Any] = {
    "type": "static",
    "static": {"max_chunk_size_tokens": MAX_TOKENS, "chunk_overlap_tokens": OVERLAP_TOKENS},
}
"""What a file in a vector store reports."""


def check_chunking(strategy: ChunkingStrategy | None) -> None:
    """Refuse sizes that the embedding model cannot take, or that are not the collections' own.

    Raises:
        ApiError: 400 that names the field.
    """
    if strategy is None:
        return
    if (strategy.type == "static") != (strategy.static is not None):
        raise bad_request(
            "`chunking_strategy.static` is required with type 'static' and not allowed with 'auto'.",
            param="chunking_strategy.static",
        )
    sizes = strategy.static
    if sizes is not None and (sizes.max_chunk_size_tokens, sizes.chunk_overlap_tokens) != (
        MAX_TOKENS,
        OVERLAP_TOKENS,
    ):
        raise bad_request(
            f"Chunks have {MAX_TOKENS} tokens, the most that the embedding model reads, and "
            f"{OVERLAP_TOKENS} overlap; other sizes are not supported.",
            param="chunking_strategy.static",
        )
