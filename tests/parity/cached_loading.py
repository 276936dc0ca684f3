"""Loads a model with a weight cache, however small it is; also as a process of its own.

    python -m tests.parity.cached_loading MODEL FOLDER [DIE_AFTER_BYTES]

Prints whether its weights were `mapped`, and exits when they are saved. With DIE_AFTER_BYTES the kernel
kills it when its file becomes longer.
"""

import resource
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

from engine.api.config import DispatchLevel, EngineConfig
from engine.executors import weight_cache
from engine.executors.native import NativeExecutor
from engine.models import source_identity
from tests.parity.loading import read_headers
from tests.parity.stepper import Run, Stepper

LIMIT = 1 << 40
BLOCKS, LENGTH = 32, 128


@contextmanager
def every_model_kept() -> Iterator[None]:
    """Small models are saved, and new files too, on disks with little space."""
    with (
        patch.object(weight_cache, "MIN_BYTES", 0),
        patch.object(weight_cache, "SPARE_BYTES", 0),
        patch.object(source_identity, "SETTLE_S", 0.0),
    ):
        yield


def load(
    path: Path,
    folder: Path | None,
    *,
    threads: int = 2,
    dispatch: DispatchLevel = "auto",
    saved: bool = True,
) -> NativeExecutor:
    """An executor with a weight cache in `folder`, unless it is None.

    `saved`: return when the packed weights are on disk, or will not be.
    """
    spec, paths, _ = read_headers(path)
    config = EngineConfig(
        path,
        "tiny",
        kv_dtype="f16",
        threads=threads,
        dispatch=dispatch,
        block_size=16,
        max_num_seqs=2,
        weight_cache_bytes=LIMIT,
        weight_cache_dir=folder,
    )
    with every_model_kept():
        executor = NativeExecutor.load(
            spec,
            paths,
            config,
            num_blocks=BLOCKS,
            max_model_len=LENGTH,
            progress=lambda share: None,
        )
        if saved and executor._saver is not None:
            executor._saver.close(wait_s=300)
    return executor


def answer(executor: NativeExecutor) -> tuple[list[int], list[float]]:
    """Greedy tokens after a fixed prompt and their log-probabilities; closes the executor."""
    config = EngineConfig(Path("tiny"), "tiny", block_size=16, max_num_seqs=2)
    run = Run(list(range(1, 40)), 8, sampling={"num_logprobs": 0})
    Stepper(executor, config, num_blocks=BLOCKS, max_model_len=LENGTH).run([run])
    executor.close()
    return run.tokens, run.logprobs


def packed_state(executor: NativeExecutor) -> str:
    """`off`, `mapped`, `missing` or `unusable`."""
    return str(executor._core.info["packed"])


def main() -> None:
    path, folder = Path(sys.argv[1]), Path(sys.argv[2])
    if len(sys.argv) > 3:
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[3]), resource.RLIM_INFINITY))
    executor = load(path, folder)
    print(packed_state(executor))
    executor.close()


if __name__ == "__main__":
    main()
