"""`kv_salt`: a hash of everything except the tokens that determines the bytes of a KV block.

It is the salt of the prefix trie's root. Two models, quantisations, KV types or RoPE settings must
not share blocks: a collision would serve one model's context to another, so every setting that may
change KV values is included. The blocks of requests with a cache salt are below a root of their own,
whose salt is `kv_salt` followed by `request_salt`, and so are those of requests with images: their tokens
do not tell one image from another.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from engine.api.config import EngineConfig
from engine.api.image import PlacedImage

if TYPE_CHECKING:
    from engine.executors.open_model import OpenModel

_VERSION = 3

NO_CACHE_SALT = b""
"""The salt of a request without a cache salt and without images."""


def request_salt(cache_salt: str | None, images: Sequence[PlacedImage] = ()) -> bytes:
    """32 bytes that identify a request's cache salt and its images with their places; empty without both."""
    if cache_salt is None and not images:
        return NO_CACHE_SALT
    # JSON may contain a lone surrogate, which plain UTF-8 cannot express.
    encoded = b"" if cache_salt is None else cache_salt.encode(errors="surrogatepass")
    if not images:
        return hashlib.blake2b(encoded, digest_size=32).digest()
    digest = hashlib.blake2b(digest_size=32, person=b"images")
    digest.update(len(encoded).to_bytes(8) + encoded)
    for placed in images:
        digest.update(placed.start.to_bytes(8) + placed.tokens.to_bytes(8) + placed.image.digest)
    return digest.digest()


def kv_salt(model: "OpenModel", config: EngineConfig) -> bytes:
    """A 32-byte hash that differs whenever equal tokens may have different KV values.

    Weights are identified by the names, sizes and modification times of their files: hashing
    gigabytes of content would cost more than the cache saves.

    Args:
        model: shapes, RoPE settings, weight files and image processor.
        config: KV type, block size, executor, device, data type and attention backend.

    Raises:
        OSError: a weight file does not exist or cannot be read.
    """
    files = []
    for path in model.paths:
        stat = path.stat()
        files.append([path.name, stat.st_size, stat.st_mtime_ns])
    facts = [
        _VERSION,
        asdict(model.spec),
        model.weight_format,
        model.parameters,
        files,
        model.tokenizer.fingerprint,
        config.kv_dtype,
        config.block_size,
        config.dispatch,
        config.executor,
        config.device,
        config.dtype,
        config.attention,
        config.dummy_weights,
        None if model.images is None else model.images.fingerprint,
    ]
    encoded = json.dumps(facts, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.blake2b(encoded.encode(), digest_size=32).digest()
