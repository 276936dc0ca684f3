"""`kv_salt`: a hash of everything except the tokens that determines the bytes of a KV block.

It is the salt of the prefix trie's root. Two models, quantisations, KV types or RoPE settings must
not share blocks: a collision would serve one model's context to another, so every setting that may
change KV values is included. The blocks of requests with a cache salt are below a root of their own,
whose salt is `kv_salt` followed by `cache_salt_digest`. Images: see `engine.memory.image_identity`.
"""

import hashlib
import json
from dataclasses import asdict
from typing import TYPE_CHECKING

from engine.api.config import EngineConfig

if TYPE_CHECKING:
    from engine.executors.open_model import OpenModel

_VERSION = 4

NO_CACHE_SALT = b""
"""The digest of a request without a cache salt."""


def cache_salt_digest(cache_salt: str | None) -> bytes:
    """32 bytes that identify a request's cache salt; empty without one."""
    if cache_salt is None:
        return NO_CACHE_SALT
    # JSON may contain a lone surrogate, which plain UTF-8 cannot express.
    return hashlib.blake2b(cache_salt.encode(errors="surrogatepass"), digest_size=32).digest()


def kv_salt(model: "OpenModel", config: EngineConfig) -> bytes:
    """A 32-byte hash that differs whenever equal tokens may have different KV values.

    Weights are identified by the names, sizes and modification times of their files: hashing
    gigabytes of content would cost more than the cache saves.

    Args:
        model: shapes, RoPE settings, weight files and image processor.
        config: weight mode, KV type, block size, executor, device, data type and attention backend.

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
        config.weights,
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
