"""Loads a tiny checkpoint as the engine does, without an engine.

The environment variable PRAVAHA_TEST_DEVICE=cuda runs the tests on a GPU (`make gpu`).
"""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from engine.api.config import EngineConfig
from engine.executors.open_model import open_model
from engine.executors.torch.executor import TorchExecutor
from tests.parity.stepper import Stepper

DEVICE = os.environ.get("PRAVAHA_TEST_DEVICE", "cpu")
BLOCK = 8
MAX_ROWS = 24
NUM_BLOCKS = 400


def torch_config(directory: Path, **settings: Any) -> EngineConfig:
    base = EngineConfig(
        directory,
        "tiny",
        executor="torch",
        device=DEVICE,
        threads=1,
        block_size=BLOCK,
        max_num_seqs=MAX_ROWS,
        kv_cache_bytes=8 << 20,
        cuda_graphs=False,  # recording them takes longer than most tests
    )
    return replace(base, **settings)


def load_torch(directory: Path, **settings: Any) -> TorchExecutor:
    config = torch_config(directory, **settings)
    model = open_model(directory, config)
    return TorchExecutor.load(
        model.spec,
        config,
        num_blocks=NUM_BLOCKS,
        max_model_len=model.spec.context_length,
        weight_format=model.weight_format,
        parameters=model.parameters,
        progress=lambda share: None,
    )


def stepper(executor: TorchExecutor, *, max_tokens: int = 64, max_model_len: int = 128) -> Stepper:
    config = torch_config(Path("unused"), max_num_batched_tokens=max_tokens)
    return Stepper(executor, config, num_blocks=NUM_BLOCKS, max_model_len=max_model_len)
