"""Opens the swap tier that a loaded model gets: a file of its own, main memory, or none.

One file a model and settings, named after what decides KV bytes, so two models never meet in one.
Files of other models stay as long as all of them together are within the bound, too. A tier that
cannot be opened costs speed and nothing else: one sentence in the log says why.
"""

import hashlib
import json
import logging
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from engine.api.config import EngineConfig
from engine.executors.base import Executor, ExecutorInfo
from engine.files.file_lock import try_hold
from engine.memory.prefix_cache import PrefixIndex
from engine.memory.swap_tier import SwapTier

_log = logging.getLogger(__name__)

SUFFIX = ".swap"
_LAYOUT = 2
"""Changes when a block's bytes mean something else, or would be computed otherwise."""


def swap_identity(salt: bytes, info: ExecutorInfo, block_bytes: int) -> bytes:
    """32 bytes that change with everything beside the tokens that changes a block's bytes.

    Unlike the salt this outlives the process, so it holds what was resolved at run time: the
    instruction-set level, the KV type, and for the torch executor the versions of what computes.

    Args:
        salt: `engine.memory.kv_identity.kv_salt`.
        info: the loaded executor.
        block_bytes: bytes of a block.
    """
    libraries = []
    if info.kind == "torch":
        libraries = [_version(name) for name in ("torch", "transformers")]
    facts = [
        _LAYOUT,
        salt.hex(),
        info.kind,
        info.dispatch,
        info.weight_format,
        info.kv_dtype,
        block_bytes,
        libraries,
    ]
    return hashlib.blake2b(json.dumps(facts).encode(), digest_size=32).digest()


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def open_swap_tier(
    config: EngineConfig,
    *,
    salt: bytes,
    index: PrefixIndex | None,
    executor: Executor,
) -> SwapTier | None:
    """The tier for a loaded model, or None if it has none.

    Args:
        config: `swap_bytes` and `swap_dir`.
        salt: stands for all that changes KV bytes and is known before loading.
        index: which tokens the pool's blocks hold; the core's own, or there is no tier.
        executor: the loaded executor.
    """
    from engine._core import PrefixTrie, SwapStore

    if config.swap_bytes == 0 or not isinstance(index, PrefixTrie):
        return None
    identity = swap_identity(salt, executor.info, executor.block_bytes)
    path = None
    if config.swap_dir is not None and executor.info.kv_in_main_memory:
        path = config.swap_dir / f"{identity.hex()[:32]}{SUFFIX}"
        make_room(config.swap_dir, keep=path, limit=config.swap_bytes)
    try:
        store = SwapStore(
            path,
            identity=identity,
            block_size=config.block_size,
            block_bytes=executor.block_bytes,
            capacity_bytes=config.swap_bytes,
        )
    except (OSError, ValueError) as error:
        _log.warning("There is no swap tier: %s.", error)
        return None
    if store.notice is not None:
        _log.warning("%s", store.notice)
    stats = store.stats()
    _log.info(
        "Swap tier: %d of %d blocks in %s.", stats.entries, stats.capacity, path or "main memory"
    )
    return SwapTier(store, index, executor)


def make_room(folder: Path, *, keep: Path, limit: int) -> None:
    """Remove other models' swap files, longest unused first, until they fit into `limit` bytes.

    A file that another process has open stays. What cannot be removed stays, too.
    """
    found = []
    for path in folder.glob(f"*{SUFFIX}"):
        try:
            stat = path.stat()
        except OSError:
            continue
        if path != keep:
            found.append((stat.st_mtime, stat.st_blocks * 512, path))
    total = sum(size for _, size, _ in found)
    for _, size, path in sorted(found):
        if total <= limit:
            break
        try:
            with try_hold(path) as free:
                if free:
                    path.unlink()
                    total -= size
        except OSError as error:
            _log.warning("The swap file %s cannot be removed: %s.", path, error)
