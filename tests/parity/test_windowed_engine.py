"""An engine of a model with sliding windows: greedy tokens are the same although the windows are given back.

The expected tokens are those of `Stepper`, whose layers keep every token; other tests compare it with
transformers.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from engine.api.config import EngineConfig
from engine.api.request import Request, SamplingParams
from engine.executors.memory_plan import MemoryPlan
from engine.executors.open_model import open_model
from engine.memory.kv_cache_config import least_window_blocks
from engine.runtime.engine import AsyncPravahaEngine
from tests.parity.expert_gguf import write_expert_gguf
from tests.parity.family_gguf import write_family_gguf
from tests.parity.loading import load_stepper
from tests.parity.stepper import Run, Stepper
from tests.parity.test_family_gguf import architecture_of
from tests.parity.tiny_families import TINY_FAMILIES
from tests.parity.tiny_models import CONTEXT, save_tiny_model

BLOCK, BUDGET, VOCAB = 16, 32, 256
TIMEOUT_S = 300
FAMILIES = {tiny.name: tiny for tiny in TINY_FAMILIES}
# All kinds: two heads' widths and layers that read others' keys; softcaps; sinks and experts; windows only.
MODELS = ["gemma3", "gemma4", "gemma2", "gpt-oss", "phi3-window"]


@pytest.fixture(scope="module", params=MODELS)
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tiny")
    path: Path = folder / "model.gguf"
    if request.param == "gpt-oss":
        write_expert_gguf(path, "gpt-oss", "MXFP4")
        return path
    tiny = FAMILIES[request.param]
    weights = save_tiny_model(tiny, folder / "checkpoint", torch.float32)
    return write_family_gguf(path, architecture_of(tiny), weights)


@pytest.fixture(scope="module")
def stepper(model: Path) -> Stepper:
    return load_stepper(model, block_size=BLOCK, rows=2, max_tokens=64, max_model_len=CONTEXT)


def settings_of(model: Path, **settings: Any) -> EngineConfig:
    defaults: dict[str, Any] = {
        "block_size": BLOCK,
        "kv_cache_bytes": 8 << 20,
        "max_num_batched_tokens": BUDGET,
        "max_model_len": CONTEXT,
        "state_interval": 32,
        "speculation": False,
        "kv_dtype": "f32",
    }
    return EngineConfig(model, "tiny", **{**defaults, **settings})


def plan_of(model: Path) -> MemoryPlan:
    return open_model(model).plan_memory(settings_of(model), kv_dtype="f32", max_model_len=CONTEXT)


def started(model: Path, **settings: Any) -> AsyncPravahaEngine:
    engine = AsyncPravahaEngine(settings_of(model, **settings))
    engine.start()
    engine.wait_ready(TIMEOUT_S)
    assert engine.snapshot().windows.total > 0
    return engine


def ids(seed: int, count: int) -> list[int]:
    return np.random.default_rng(seed).integers(3, VOCAB, count).tolist()


def greedy(prompt: list[int], count: int) -> Request:
    return Request(
        tuple(prompt), SamplingParams(temperature=0.0, max_tokens=count, ignore_eos=True)
    )


def expected(stepper: Stepper, prompt: list[int], count: int) -> tuple[int, ...]:
    run = Run(prompt, count)
    stepper.run([run])
    return tuple(run.tokens)


def check(engine: AsyncPravahaEngine, stepper: Stepper, prompt: list[int], count: int = 20) -> int:
    """The cached tokens of a prompt whose answer is right."""
    output = engine.submit(greedy(prompt, count)).wait_result(TIMEOUT_S)
    assert output.token_ids == expected(stepper, prompt, count)
    return output.cached_tokens


def small_pool(model: Path, tokens: int) -> tuple[int, int]:
    """Bytes of a pool for `tokens` tokens with the fewest window blocks, and that number."""
    plan = plan_of(model)
    count = least_window_blocks(plan, block_size=BLOCK, token_budget=BUDGET)
    full = plan.block_bytes - plan.window_block_bytes
    return -(-tokens // BLOCK) * full + count * plan.window_block_bytes, count


def test_a_context_of_many_windows_in_a_pool_that_could_not_hold_it(
    model: Path, stepper: Stepper
) -> None:
    pool, windows = small_pool(model, CONTEXT)
    assert pool // plan_of(model).block_bytes * BLOCK < CONTEXT
    engine = started(model, kv_cache_bytes=pool, window_blocks=windows)
    prompt = ids(1, 150)
    assert check(engine, stepper, prompt, 90) == 0
    assert check(engine, stepper, [*prompt, *expected(stepper, prompt, 90)][:230], 10) >= 224
    counts = engine.snapshot().windows
    assert (counts.total, counts.active) == (windows, 0)
    engine.shutdown()


def test_turns_forks_and_equal_prompts(model: Path, stepper: Stepper) -> None:
    engine = started(model)
    prompt = ids(1, 70)
    assert check(engine, stepper, prompt, 40) == 0
    answer = list(expected(stepper, prompt, 40))
    assert check(engine, stepper, prompt) == 64
    assert check(engine, stepper, prompt[:64]) == 63
    assert check(engine, stepper, [*prompt, *answer, *ids(2, 9)]) == 96
    check(engine, stepper, [*prompt[:50], *ids(3, 30)])
    parent = engine.submit(greedy(prompt, 180))
    children = [
        child for at in (None, 3, 40, 70) for child in engine.fork(parent.request_id, at=at, n=2)
    ]
    for handle in (parent, *children):
        begun = list(handle.request.prompt_ids)
        output = handle.wait_result(TIMEOUT_S)
        assert output.token_ids == expected(stepper, begun, len(output.token_ids))
        assert len(output.token_ids) == len(prompt) + 180 - len(begun)
    engine.shutdown()


def test_many_requests_in_few_window_blocks(model: Path, stepper: Stepper) -> None:
    pool, windows = small_pool(model, 3 * CONTEXT)
    engine = started(
        model, kv_cache_bytes=pool, window_blocks=windows, swap_bytes=4 << 20, max_num_seqs=8
    )
    common = ids(5, 40)
    requests = [greedy([*common, *ids(seed, 12)], 50) for seed in range(10, 18)]
    handles = [engine.submit(request) for request in requests]
    for handle in handles:
        output = handle.wait_result(TIMEOUT_S)
        assert output.token_ids == expected(stepper, list(handle.request.prompt_ids), 50)
    assert engine.snapshot().windows.evicted > 0
    engine.shutdown()


def test_a_restart_reads_windows_from_their_files(
    model: Path, stepper: Stepper, tmp_path: Path
) -> None:
    settings = {"swap_bytes": 8 << 20, "swap_dir": tmp_path}
    engine = started(model, **settings)
    prompt = ids(6, 70)
    check(engine, stepper, prompt)
    engine.shutdown()
    engine = started(model, **settings)
    assert check(engine, stepper, [*prompt, *ids(7, 5)]) == 64
    engine.shutdown()


def test_drafts_change_no_token(model: Path, stepper: Stepper) -> None:
    engine = started(model, speculation=True)
    prompt = [*ids(8, 12)] * 6
    for _ in range(3):
        check(engine, stepper, prompt, 60)
    engine.shutdown()
