"""Answers about the engine: what `pravaha --attach` draws, the tokenizer, prefixes, prices."""

from typing import Any, Literal

from app.server.wire.answers.base import Answer, ListAnswer
from engine.api.request_status import RequestStatus
from engine.api.snapshot import EngineSnapshot


class SnapshotAnswer(Answer):
    """The engine at its last step boundary."""

    snapshot: EngineSnapshot
    now: float
    """Monotonic seconds of the server."""
    tokenizer_fingerprint: str | None


class BlocksAnswer(Answer):
    """KV blocks; arrays are base64 of little-endian values (`engine/clients/block_wire.py`)."""

    epoch: int
    base: int | None
    """The epoch to which it is relative; null for all blocks."""
    num_blocks: int
    block_size: int
    changed: str
    state: str
    refcount: str
    fill: str
    pinned: str
    last_used: str
    tables: list[list[str | int]]
    held: str


class EventsAnswer(Answer):
    """Events of the engine."""

    next: int
    """The number to ask for next."""
    missed: int
    """Events that were overwritten before they were asked for."""
    events: list[dict[str, Any]]


class RequestsAnswer(Answer):
    """The live requests."""

    requests: list[RequestStatus]


class StepsAnswer(Answer):
    """Steps: number, start, seconds, prefill tokens, decode tokens, draft tokens, rows."""

    steps: list[list[float | int]]
    plan: dict[str, Any] | None


class PinAnswer(Answer):
    """The name of a pin."""

    pin_id: str


class TokenPiece(Answer):
    """A token; a piece that is a part of a character is a list of bytes."""

    id: int
    piece: str | list[int]


class TokenizedText(Answer):
    """The tokens of a text or of a conversation."""

    count: int
    max_model_len: int
    tokens: list[int] | list[TokenPiece]
    token_strs: list[str] | None = None


class DetokenizedText(Answer):
    """The text of tokens, under vLLM's name and under llama.cpp's."""

    prompt: str
    content: str
    token_texts: list[str] | None = None


class RenderedTemplate(Answer):
    """A conversation as the chat template writes it."""

    prompt: str


class TokenizerInfo(Answer):
    """What the tokenizer is."""

    bos_token: str | None
    eos_token: str | None
    unk_token: str | None
    pad_token: str | None
    fingerprint: str
    add_bos_token: bool
    chat_template: str | None
    control_tokens: dict[str, int]


class SessionObject(Answer):
    """What the prompts of a session have cost."""

    id: str
    object: Literal["session"]
    requests: int
    prompt_tokens: int
    new_tokens: int
    computed_tokens: int
    reread_tokens: int
    hit_rate: float | None
    last_used: int


class SessionList(ListAnswer[SessionObject]):
    """The sessions that were used last."""
