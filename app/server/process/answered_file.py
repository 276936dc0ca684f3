"""A file of `AnsweredTurns`, beside the swapped KV blocks: conversations go on after a restart as before it.

It is written when the server stops and read when it starts; a server that was killed encodes the messages of
its conversations anew. The file has token ids and hashes, no names and no texts, and only its owner can read
it, as the swapped blocks. A file that is damaged, or of another form, is left out.
"""

import logging
import os
from pathlib import Path

import numpy as np

from app.server.process.answered_turns import KEY_BYTES, AnsweredTurns
from engine.api.config import EngineConfig

_log = logging.getLogger(__name__)

NAME = "answered_turns.npz"


def answered_file(config: EngineConfig) -> Path | None:
    """Where the answered turns are kept; None without blocks on disk, which alone make them useful."""
    if config.swap_dir is None or not config.swap_bytes or not config.prefix_caching:
        return None
    return config.swap_dir / NAME


def save_answered(turns: AnsweredTurns, path: Path) -> None:
    """Write the turns; replaces the file atomically. A failure is logged."""
    entries = turns.entries()
    part = path.with_name(f"{NAME}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part.unlink(missing_ok=True)
        descriptor = os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
        with open(descriptor, "wb") as file:
            np.savez(
                file,
                keys=np.frombuffer(b"".join(key for key, _ in entries), np.uint8),
                lengths=np.array([len(ids) for _, ids in entries], np.int64),
                ids=np.concatenate(
                    [np.zeros(0, np.int32), *(np.frombuffer(ids, np.int32) for _, ids in entries)]
                ),
            )
        part.replace(path)
    except OSError as error:
        _log.warning("The conversations could not be kept for the next start: %s", error)


def restore_answered(turns: AnsweredTurns, path: Path) -> None:
    """Read the turns that another process has written, if there are any."""
    try:
        with np.load(path, allow_pickle=False) as file:
            keys, lengths, ids = file["keys"], file["lengths"], file["ids"]
        ends = np.cumsum(lengths)
        sizes = (keys.dtype, lengths.dtype, ids.dtype, keys.size, ends[-1] if ends.size else 0)
        wanted = (np.uint8, np.int64, np.int32, KEY_BYTES * lengths.size, ids.size)
        if sizes != wanted or (lengths < 0).any():
            raise ValueError("its sizes do not agree")
    except FileNotFoundError:
        return
    except Exception as error:  # numpy's and zipfile's readers raise a dozen kinds
        _log.warning("The conversations of the last start are left out: %s", error)
        return
    for at, (length, end) in enumerate(zip(lengths.tolist(), ends.tolist(), strict=True)):
        key = keys[at * KEY_BYTES : (at + 1) * KEY_BYTES].tobytes()
        turns.restore(key, ids[end - length : end])
