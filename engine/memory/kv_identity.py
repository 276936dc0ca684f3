"""What, beside the tokens, decides the bytes of a KV block: the salt of the prefix trie's root.

Two models, quantisations, KV types or RoPE settings must share no block. A collision here would
serve one model's context to another, so everything that could matter goes in.
"""

import hashlib
import json
from dataclasses import asdict
from typing import TYPE_CHECKING

from engine.api.config import EngineConfig

if TYPE_CHECKING:
    from engine.executors.open_model import OpenModel

_VERSION = 2


def kv_salt(model: "OpenModel", config: EngineConfig) -> bytes:
    """32 bytes that change whenever equal tokens could have other KV.

    The weights are told by the names, sizes and times of their files: reading gigabytes to
    fingerprint them would cost more than the cache saves.

    Args:
        model: shapes, RoPE settings and weight files.
        config: KV type, block size, and who computes with what.
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
    ]
    encoded = json.dumps(facts, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.blake2b(encoded.encode(), digest_size=32).digest()
