"""A SentencePiece model file of a GGUF vocabulary: the outside reference for our encoding of it."""

import struct
from collections.abc import Mapping

from sentencepiece import SentencePieceProcessor

UNKNOWN, USER_DEFINED = 2, 4
_BPE = 2


def sentencepiece_model(metadata: Mapping[str, object]) -> SentencePieceProcessor:
    """The library's own encoder of the vocabulary in GGUF metadata, with its normalization left out."""
    fields = {key.removeprefix("tokenizer.ggml."): value for key, value in metadata.items()}
    unknown = fields["unknown_token_id"]
    pieces = zip(fields["tokens"], fields["scores"], fields["token_type"], strict=True)
    parts = []
    for token_id, (piece, score, kind) in enumerate(pieces):
        if kind == USER_DEFINED:  # written literally in GGUF
            piece = piece.replace(" ", "\u2581")
        body = _bytes(1, piece.encode()) + b"\x15" + struct.pack("<f", score)
        parts.append(_bytes(1, body + _number(3, UNKNOWN if token_id == unknown else kind)))
    trainer = _number(3, _BPE) + _number(4, len(fields["tokens"])) + _number(35, 1)
    trainer += _number(40, unknown)
    normalizer = _bytes(1, b"identity") + _number(3, fields.get("add_space_prefix", True))
    normalizer += _number(4, 0) + _number(5, 1)
    processor = SentencePieceProcessor()
    processor.LoadFromSerializedProto(b"".join([*parts, _bytes(2, trainer), _bytes(3, normalizer)]))
    return processor


def _varint(value: int) -> bytes:
    written = b""
    while value >= 0x80:
        written += bytes([value & 0x7F | 0x80])
        value >>= 7
    return written + bytes([value])


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(int(value))


def _bytes(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value
