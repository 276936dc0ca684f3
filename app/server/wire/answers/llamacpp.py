"""Answers of llama.cpp's own endpoints."""

from typing import Any, Literal

from app.server.wire.answers.base import Answer


class LlamaCppPiece(Answer):
    """A piece of a stream, or the whole answer: the last piece, and the whole, have counts and times."""

    index: int
    content: str
    tokens: list[int]
    stop: bool
    id_slot: int | None = None
    model: str | None = None
    tokens_predicted: int | None = None
    tokens_evaluated: int | None = None
    tokens_cached: int | None = None
    has_new_line: bool | None = None
    truncated: bool | None = None
    stop_type: Literal["eos", "limit", "word"] | None = None
    stopping_word: str | None = None
    timings: dict[str, float] | None = None
    """In milliseconds."""
    completion_probabilities: list[dict[str, Any]] | None = None


class LlamaCppProps(Answer):
    """What the server is."""

    default_generation_settings: dict[str, Any]
    total_slots: int
    model_alias: str
    model_path: str
    chat_template: str | None
    bos_token: str | None
    eos_token: str | None
    modalities: dict[str, bool]
    build_info: str


class LlamaCppSlot(Answer):
    """A row of the engine."""

    id: int
    n_ctx: int
    is_processing: bool
