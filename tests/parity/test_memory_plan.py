"""The memory plan, made from headers, compared with what a loaded executor holds."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from engine.api.config import EngineConfig, KvDtype, WeightMode
from engine.api.errors import ModelError
from engine.executors.memory_plan import plan_native
from engine.executors.native import NativeExecutor
from tests.fakes.tiny_gguf import write_tiny_gguf
from tests.parity.loading import read_headers
from tests.parity.quantised_models import MEASURED, RANDOM, write_model
from tests.parity.tiny_families import TINY_FAMILIES
from tests.parity.tiny_models import TINY_MODELS, TinyModel, save_tiny_model
from tests.parity.tiny_recurrent import TINY_RECURRENT

BY_NAME = {tiny.name: tiny for tiny in TINY_MODELS}


def check(
    path: Path, *, weights: WeightMode = "stored", kv_dtype: KvDtype = "f16", threads: int = 1
) -> int:
    """Load the model at `path`, compare, and return the bytes of its weights."""
    spec, paths, _ = read_headers(path)
    config = EngineConfig(
        path,
        "tiny",
        weights=weights,
        kv_dtype=kv_dtype,
        threads=threads,
        max_num_seqs=4,
        max_num_batched_tokens=32,
        state_slots=2 if spec.has_states else None,
    )
    plan = plan_native(spec, paths, config, kv_dtype=kv_dtype, max_model_len=64)
    executor = NativeExecutor.load(
        spec, paths, config, num_blocks=3, max_model_len=64, progress=lambda share: None
    )
    held = executor._core.info
    assert (plan.weight_bytes, plan.work_bytes) == (held["weight_bytes"], held["work_bytes"])
    assert plan.weight_format == held["weight_format"]
    assert (plan.block_bytes, 3 * plan.block_bytes) == (executor.block_bytes, held["kv_bytes"])
    assert plan.state_bytes == executor.state_bytes
    assert (plan.state_bytes > 0) == spec.has_states
    executor.close()
    return plan.weight_bytes


@pytest.mark.parametrize("dtype", [*MEASURED, *RANDOM])
def test_weights_of_every_gguf_format(dtype: str, tmp_path: Path) -> None:
    assert check(write_model(tmp_path / "tiny.gguf", dtype), threads=2) > 0


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_weights_of_safetensors(dtype: torch.dtype, tmp_path: Path) -> None:
    save_tiny_model(BY_NAME["qwen2"], tmp_path, dtype)
    assert check(tmp_path) > 0


@pytest.mark.parametrize(("weights", "most", "least"), [("q8", 0.54, 0.53), ("q4", 0.35, 0.32)])
def test_weights_that_are_quantized_at_load(
    weights: WeightMode, most: float, least: float, tmp_path: Path
) -> None:
    """8.5 of 16 bits, and from 4.6 to 6.6, in rows of 256 inputs; less is saved where rows are no blocks."""
    path = write_model(tmp_path / "tiny.gguf", "F16")
    assert least < check(path, weights=weights) / check(path) < most
    save_tiny_model(BY_NAME["qwen2"], tmp_path, torch.bfloat16)
    assert check(tmp_path, weights=weights) < check(tmp_path)


def test_an_lm_head_of_its_own_is_counted(tmp_path: Path) -> None:
    tied, untied = (
        check(write_tiny_gguf(tmp_path / f"{tied}.gguf", tied=tied)) for tied in (True, False)
    )
    spec, _, _ = read_headers(tmp_path / "True.gguf")
    assert untied - tied == -(-spec.vocab_size // 16) * 16 * spec.hidden_size * 4


@pytest.mark.parametrize("kv_dtype", ["f16", "f32", "int8"])
def test_kv_blocks_include_the_padding_of_heads(kv_dtype: KvDtype, tmp_path: Path) -> None:
    """Heads of 24 dimensions, which are padded to 32."""
    save_tiny_model(BY_NAME["llama-odd-heads"], tmp_path, torch.float32)
    check(tmp_path, kv_dtype=kv_dtype)


@pytest.mark.parametrize("tiny", TINY_RECURRENT, ids=lambda tiny: tiny.name)
def test_states_of_recurrent_layers_are_planned(tiny: TinyModel, tmp_path: Path) -> None:
    save_tiny_model(tiny, tmp_path, torch.float32)
    check(tmp_path)
    spec, paths, _ = read_headers(tmp_path)
    with pytest.raises(ModelError, match="state_slots is 0"):
        NativeExecutor.load(
            spec,
            paths,
            EngineConfig(tmp_path, "tiny", threads=1),
            num_blocks=3,
            max_model_len=64,
            progress=lambda share: None,
        )


def test_sizes_follow_the_settings_that_buffers_depend_on(tmp_path: Path) -> None:
    path = write_model(tmp_path / "tiny.gguf", "Q8_0")
    spec, paths, _ = read_headers(path)

    def work_bytes(config: EngineConfig) -> int:
        return plan_native(spec, paths, config, kv_dtype="f16", max_model_len=64).work_bytes

    config = EngineConfig(path, "tiny", threads=1, max_num_seqs=4, max_num_batched_tokens=64)
    base = work_bytes(config)
    assert base < work_bytes(replace(config, threads=2))
    assert base < work_bytes(replace(config, max_num_batched_tokens=128))


@pytest.mark.parametrize("name", ["gemma3", "gemma4", "phi3-window"])
def test_window_blocks_are_a_part_of_the_blocks(name: str, tmp_path: Path) -> None:
    tiny = next(tiny for tiny in TINY_FAMILIES if tiny.name == name)
    save_tiny_model(tiny, tmp_path, torch.float32)
    spec, paths, _ = read_headers(tmp_path)
    config = EngineConfig(tmp_path, "tiny", kv_dtype="f16", threads=1, window_blocks=5)
    plan = plan_native(spec, paths, config, kv_dtype="f16", max_model_len=64)
    assert plan.window == 20
    assert 0 < plan.window_block_bytes < plan.block_bytes
    executor = NativeExecutor.load(
        spec, paths, config, num_blocks=3, max_model_len=64, progress=lambda share: None
    )
    full = plan.block_bytes - plan.window_block_bytes
    assert (executor.block_bytes, executor.window_block_bytes) == (full, plan.window_block_bytes)
    assert executor._core.info["kv_bytes"] == 3 * full + 5 * plan.window_block_bytes
    executor.close()
    short = plan_native(spec, paths, config, kv_dtype="f16", max_model_len=20)
    assert (short.window, short.window_block_bytes) == (0, 0)
    assert short.block_bytes == plan.block_bytes
