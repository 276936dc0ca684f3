"""Executors and steppers for the parity tests."""

from pathlib import Path

from engine.api.config import EngineConfig, KvDtype, WeightMode
from engine.executors.native import NativeExecutor
from engine.executors.native_settings import native_kv_dtype
from engine.executors.open_model import open_model
from engine.files.json_file import read_json
from engine.models.quantization import QUANTIZED_DTYPES, read_quantization
from engine.models.safetensors import read_spec, read_tensors, weight_files
from engine.models.spec import ModelSpec
from tests.parity.stepper import Stepper


def load_stepper(
    path: Path,
    *,
    kv_dtype: KvDtype = "f32",
    weights: WeightMode = "stored",
    dispatch: str = "auto",
    threads: int | None = None,
    block_size: int = 32,
    rows: int = 16,
    max_tokens: int = 256,
    max_model_len: int = 256,
    num_blocks: int = 192,
) -> Stepper:
    """A stepper for the model at `path`: a GGUF file, or a directory, possibly without a tokenizer.

    `kv_dtype`: `auto` is the type that an engine takes by default.
    """
    spec, paths, weight_format = read_headers(path)
    config = EngineConfig(
        model=path,
        name=path.stem,
        weights=weights,
        kv_dtype=native_kv_dtype(kv_dtype, spec, weight_format, weights),
        dispatch=dispatch,  # type: ignore[arg-type]
        threads=threads,
        block_size=block_size,
        max_num_seqs=rows,
        max_num_batched_tokens=max_tokens,
        state_slots=rows if spec.has_states else None,
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


def read_headers(path: Path) -> tuple[ModelSpec, tuple[Path, ...], str]:
    """Shapes, weight files and weight format, which is F32 for every checkpoint of floats."""
    if path.is_file():
        opened = open_model(path)
        return opened.spec, opened.paths, opened.weight_format
    paths, config = weight_files(path), read_json(path / "config.json")
    quantization = read_quantization(config)
    if quantization is None:
        return read_spec(config, read_tensors(paths)), paths, "F32"
    tensors = quantization.matrices(read_tensors(paths, known=QUANTIZED_DTYPES))
    return read_spec(config, tensors), paths, quantization.title
