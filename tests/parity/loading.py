"""Executors and steppers for the parity tests."""

from pathlib import Path

from engine.api.config import EngineConfig, KvDtype
from engine.executors.native import NativeExecutor
from engine.executors.open_model import open_model
from engine.files.json_file import read_json
from engine.models.safetensors import read_spec, read_tensors, weight_files
from engine.models.spec import ModelSpec
from tests.parity.stepper import Stepper


def load_stepper(
    path: Path,
    *,
    kv_dtype: KvDtype = "f32",
    dispatch: str = "auto",
    block_size: int = 32,
    rows: int = 16,
    max_tokens: int = 256,
    max_model_len: int = 256,
    num_blocks: int = 192,
    threads: int | None = None,
) -> Stepper:
    """A stepper for the model at `path`: a GGUF file, or a directory, possibly without a tokenizer."""
    spec, paths = _spec_and_paths(path)
    config = EngineConfig(
        model=path,
        name=path.stem,
        kv_dtype=kv_dtype,
        dispatch=dispatch,  # type: ignore[arg-type]
        block_size=block_size,
        max_num_seqs=rows,
        max_num_batched_tokens=max_tokens,
        threads=threads,
    )
    executor = NativeExecutor.load(
        spec,
        paths,
        config,
        num_blocks=num_blocks,
        max_model_len=max_model_len,
        progress=lambda share: None,
    )
    return Stepper(executor, config, num_blocks=num_blocks, max_model_len=max_model_len)


def _spec_and_paths(path: Path) -> tuple[ModelSpec, tuple[Path, ...]]:
    if path.is_file():
        opened = open_model(path)
        return opened.spec, opened.paths
    paths = weight_files(path)
    return read_spec(read_json(path / "config.json"), read_tensors(paths)), paths
