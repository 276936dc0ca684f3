"""Loads a tiny decoder in ONNX as the engine does, without an engine, and its oracle in transformers."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from engine.api.config import EngineConfig
from engine.executors.onnx.executor import OnnxExecutor
from engine.executors.open_model import open_model
from engine.runtime.loading import load_executor
from tests.fakes.tiny_onnx import Llama
from tests.fakes.tiny_transformers import tiny_hf_model
from tests.parity.stepper import Stepper

BLOCK = 8
MAX_ROWS = 24
NUM_BLOCKS = 400


def tiny_llama(*, hidden: int = 64, **changes: Any) -> tuple[Any, Llama]:
    """A random model of transformers, and its weights. Heads of the fused operator have 16 elements."""
    model = tiny_hf_model("llama", hidden_size=hidden, **changes)
    return model, as_llama(model)


def as_llama(model: Any) -> Llama:
    config = model.config
    return Llama(
        layers=config.num_hidden_layers,
        hidden=config.hidden_size,
        heads=config.num_attention_heads,
        kv_heads=config.num_key_value_heads,
        vocab=config.vocab_size,
        context=config.max_position_embeddings,
        theta=config.rope_parameters["rope_theta"],
        eps=config.rms_norm_eps,
        weights={name: weight.detach().numpy() for name, weight in model.state_dict().items()},
    )


def onnx_config(path: Path, **settings: Any) -> EngineConfig:
    base = EngineConfig(
        path, "tiny", threads=1, block_size=BLOCK, max_num_seqs=MAX_ROWS, kv_cache_bytes=8 << 20
    )
    return replace(base, **settings)


def load_onnx(path: Path, **settings: Any) -> OnnxExecutor:
    config = onnx_config(path, **settings)
    model = open_model(path, config)
    executor = load_executor(
        model,
        config,
        num_blocks=NUM_BLOCKS,
        max_model_len=model.spec.context_length,
        progress=lambda share: None,
    )
    assert isinstance(executor, OnnxExecutor)
    return executor


def stepper(executor: OnnxExecutor, *, max_tokens: int = 64, max_model_len: int = 128) -> Stepper:
    config = onnx_config(Path("unused"), max_num_batched_tokens=max_tokens)
    return Stepper(executor, config, num_blocks=NUM_BLOCKS, max_model_len=max_model_len)
