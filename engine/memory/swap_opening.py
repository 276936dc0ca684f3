"""Opens the swap tier of a loaded model: in a file, in main memory, or none.

There is one file per model and settings, named by a hash of everything that determines KV bytes, so
two models never share a file. Files of other models are kept while their total size is within
`swap_bytes`. If a tier cannot be opened, a warning is logged and the engine runs without one.

The states of a model with recurrent layers, and the kept windows of one with sliding windows, are in a folder
beside its file. Only the process that has the
file open uses the folder.
"""

import hashlib
import json
import logging
import shutil
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from engine.api.config import EngineConfig
from engine.executors.base import Executor, ExecutorInfo, StateKeeper, WindowKeeper
from engine.files.file_lock import try_hold
from engine.memory.prefix_cache import PrefixIndex
from engine.memory.state_store import StateStore
from engine.memory.swap_tier import SwapTier

_log = logging.getLogger(__name__)

SUFFIX = ".swap"
STATES_SUFFIX = ".states"
STATE_SHARE = 0.5
"""Share of `swap_bytes` for the states of a model with recurrent layers, or for kept windows."""
_LAYOUT = 3
"""Version of a block's byte layout, arithmetic and key; increment it when one of them changes."""
_LIBRARIES = {"torch": ("torch", "transformers"), "onnx": ("onnxruntime",)}
"""Packages that compute KV, by the executor's kind."""


def swap_identity(salt: bytes, info: ExecutorInfo, block_bytes: int) -> bytes:
    """A 32-byte hash of everything except the tokens that determines a block's bytes.

    Unlike the salt it outlives the process, so it includes settings resolved at run time: the
    instruction-set level, the KV type, and the versions of the libraries that compute.

    Args:
        salt: `engine.memory.kv_identity.kv_salt`.
        info: the loaded executor.
        block_bytes: bytes per block.
    """
    libraries = [_version(name) for name in _LIBRARIES.get(info.kind, ())]
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
    """Open the swap tier for a loaded model; None if it is disabled or cannot be opened.

    Args:
        config: `swap_bytes` and `swap_dir`; of the former, a model with recurrent layers or sliding windows
            has `STATE_SHARE` for states or windows.
        salt: `engine.memory.kv_identity.kv_salt`.
        index: the pool's prefix index; anything but `PrefixTrie` disables the tier.
        executor: the loaded executor.
    """
    from engine._core import PrefixTrie, SwapStore

    if config.swap_bytes == 0 or not isinstance(index, PrefixTrie):
        return None
    identity = swap_identity(salt, executor.info, executor.block_bytes)
    path = _path(config, identity, executor)
    if path is not None:
        evict_swap_files(path.parent, keep=path, limit=config.swap_bytes)
    try:
        store = SwapStore(
            path,
            identity=identity,
            block_size=config.block_size,
            block_bytes=executor.block_bytes,
            capacity_bytes=config.swap_bytes - _bytes_for_states(config, executor),
        )
    except (OSError, ValueError) as error:
        _log.warning("The swap tier cannot be opened; the engine runs without one: %s.", error)
        return None
    if store.notice is not None:
        _log.warning("%s", store.notice)
    stats = store.stats()
    _log.info(
        "Swap tier: %d of %d blocks in %s.", stats.entries, stats.capacity, path or "main memory"
    )
    return SwapTier(store, index, executor, salt=salt)


def open_state_store(
    config: EngineConfig, state_bytes: int, *, salt: bytes, executor: Executor
) -> StateStore | None:
    """Open the store of recurrent states, or of windows, beside the open swap tier; None if that fails.

    Args:
        config: `swap_bytes` and `swap_dir`.
        state_bytes: bytes of a state, or of the largest window.
        salt: `engine.memory.kv_identity.kv_salt`.
        executor: the loaded executor.
    """
    path = _path(config, swap_identity(salt, executor.info, executor.block_bytes), executor)
    try:
        store = StateStore(
            None if path is None else path.with_suffix(STATES_SUFFIX),
            state_bytes=state_bytes,
            capacity_bytes=_bytes_for_states(config, executor),
        )
    except OSError as error:
        _log.warning("Recurrent states and windows cannot be stored: %s.", error)
        return None
    _log.info("State store: %d of %d states.", len(store), store.capacity)
    return store


def _path(config: EngineConfig, identity: bytes, executor: Executor) -> Path | None:
    """The swap file of a model; None if its tier is in main memory."""
    if config.swap_dir is None or not executor.info.kv_in_main_memory:
        return None
    return config.swap_dir / f"{identity.hex()[:32]}{SUFFIX}"


def _bytes_for_states(config: EngineConfig, executor: Executor) -> int:
    has_states = isinstance(executor, StateKeeper) and executor.state_bytes
    has_windows = isinstance(executor, WindowKeeper) and executor.window_block_bytes
    return int(config.swap_bytes * STATE_SHARE) if has_states or has_windows else 0


def evict_swap_files(folder: Path, *, keep: Path, limit: int) -> None:
    """Delete swap files of other models, least recently used first, until they fit in `limit` bytes.

    A file's size includes the folder of states beside it, which goes with it. A file that another process has
    locked, or that cannot be deleted, is kept.

    Args:
        folder: directory of the swap files.
        keep: the file of the current model, neither counted nor deleted.
        limit: bytes on disk.
    """
    found = []
    for path in folder.glob(f"*{SUFFIX}"):
        try:
            stat = path.stat()
        except OSError:
            continue
        if path != keep:
            size = stat.st_blocks * 512 + _bytes_in(path.with_suffix(STATES_SUFFIX))
            found.append((stat.st_mtime, size, path))
    total = sum(size for _, size, _ in found)
    for _, size, path in sorted(found):
        if total <= limit:
            break
        try:
            with try_hold(path) as free:
                if free:
                    shutil.rmtree(path.with_suffix(STATES_SUFFIX), ignore_errors=True)
                    path.unlink()
                    total -= size
        except OSError as error:
            _log.warning("The swap file %s cannot be removed: %s.", path, error)


def _bytes_in(folder: Path) -> int:
    """Bytes of a folder's files; 0 if it does not exist."""
    try:
        return sum(file.stat().st_blocks * 512 for file in folder.iterdir())
    except OSError:
        return 0
