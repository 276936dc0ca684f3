"""`model_identity`: identifies a model by the contents of its files and its vocabulary, on every machine."""

import hashlib

from engine.api.snapshot import ModelInfo


def model_identity(model: ModelInfo, tokenizer_fingerprint: str) -> str:
    """24 hexadecimal digits. Without a digest, as behind an older server, name and sizes identify a model."""
    if model.digest:
        return file_identity(model.digest, tokenizer_fingerprint)
    named = (
        model.name,
        model.architecture,
        model.parameters,
        model.weight_format,
        model.vocab_size,
    )
    return _hash(named, tokenizer_fingerprint)


def file_identity(digest: str, tokenizer_fingerprint: str) -> str:
    """The identity of a model that may not be loaded, by its files' digest."""
    return _hash(digest, tokenizer_fingerprint)


def _hash(*parts: object) -> str:
    return hashlib.blake2b(repr(parts).encode(), digest_size=12).hexdigest()
