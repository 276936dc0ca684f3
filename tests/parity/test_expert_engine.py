"""An engine of a model with experts: neighbours, chunks, hits, forks, preemption and swap change no token.

The expected tokens are those of `Stepper`, which computes one sequence alone.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from engine.api.config import EngineConfig
from engine.api.request import Request, SamplingParams
from engine.runtime.engine import AsyncPravahaEngine
from tests.parity.expert_gguf import write_expert_gguf, write_float_gguf
from tests.parity.loading import load_stepper
from tests.parity.stepper import Run, Stepper
from tests.parity.tiny_experts import TINY_EXPERTS
from tests.parity.tiny_models import save_tiny_model

BLOCK = 16
STEP_TOKENS = 64
TIMEOUT_S = 300
VOCAB = 250
"""Ids below it are tokens of all models."""


def write_tiny(name: str, folder: Path) -> Path:
    tiny = next(tiny for tiny in TINY_EXPERTS if tiny.name == name)
    model = save_tiny_model(tiny, folder, torch.float32)
    return write_float_gguf(folder / "tiny.gguf", model)


def write_quantized(architecture: str, dtype: str, folder: Path) -> Path:
    write_expert_gguf(folder / "tiny.gguf", architecture, dtype)
    return folder / "tiny.gguf"


MODELS: dict[str, Callable[[Path], Path]] = {
    "olmoe": lambda folder: write_tiny("olmoe", folder),
    "lfm2moe": lambda folder: write_tiny("lfm2moe", folder),
    "qwen3moe": lambda folder: write_quantized("qwen3moe", "Q4_K", folder),
    "gpt-oss": lambda folder: write_quantized("gpt-oss", "MXFP4", folder),
}


@pytest.fixture(scope="module", params=MODELS.values(), ids=MODELS)
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return request.param(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="module")
def stepper(model: Path) -> Stepper:
    return load_stepper(
        model, block_size=BLOCK, rows=2, max_tokens=STEP_TOKENS, max_model_len=256, threads=1
    )


def started(model: Path, **settings: object) -> AsyncPravahaEngine:
    defaults: dict[str, object] = {
        "block_size": BLOCK,
        "kv_cache_bytes": 8 << 20,
        "max_num_batched_tokens": STEP_TOKENS,
        "max_model_len": 256,
        "state_slots": 24,
        "state_interval": 32,
        "kv_dtype": "f32",
    }
    engine = AsyncPravahaEngine(EngineConfig(model, "tiny", **{**defaults, **settings}))
    engine.start()
    engine.wait_ready(TIMEOUT_S)
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


def test_prompts_of_all_lengths_in_one_batch(model: Path, stepper: Stepper) -> None:
    """Chunks of long prompts are computed beside the answers to short ones, and rows share experts."""
    engine = started(model)
    prompts = [ids(seed, length) for seed, length in enumerate((1, 5, 17, 33, 64, 100, 150, 90))]
    handles = [engine.submit(greedy(prompt, 40)) for prompt in prompts]
    for prompt, handle in zip(prompts, handles, strict=True):
        assert handle.wait_result(TIMEOUT_S).token_ids == expected(stepper, prompt, 40)
    engine.shutdown()


def test_turns_forks_and_equal_prompts(model: Path, stepper: Stepper) -> None:
    engine = started(model)
    prompt = ids(1, 70)
    assert check(engine, stepper, prompt, 40) == 0
    answer = list(expected(stepper, prompt, 40))
    assert check(engine, stepper, prompt) == 64
    assert check(engine, stepper, [*prompt, *answer, *ids(2, 9)]) >= 96
    assert check(engine, stepper, [*prompt[:50], *ids(3, 30)]) >= 32
    equal = [engine.submit(greedy(prompt, 30)) for _ in range(3)]
    for handle in equal:
        assert handle.wait_result(TIMEOUT_S).token_ids == expected(stepper, prompt, 30)
    parent = engine.submit(greedy(prompt, 170))
    children = [
        child for at in (None, 3, 40, 70) for child in engine.fork(parent.request_id, at=at, n=2)
    ]
    for handle in (parent, *children):
        begun = list(handle.request.prompt_ids)
        output = handle.wait_result(TIMEOUT_S)
        assert output.token_ids == expected(stepper, begun, len(output.token_ids))
        assert len(output.token_ids) == len(prompt) + 170 - len(begun)
    assert engine.snapshot().blocks.active == 0
    engine.shutdown()


def test_preemption_and_swap(model: Path, stepper: Stepper, tmp_path: Path) -> None:
    engine = started(model)
    first = engine.snapshot()
    block, states = first.blocks.block_bytes + first.windows.block_bytes, first.states.slot_bytes
    engine.shutdown()
    settings: dict[str, object] = {
        "swap_bytes": 8 << 20,
        "swap_dir": tmp_path,
        "state_slots": 6,
    }
    engine = started(model, kv_cache_bytes=20 * block + 6 * states, **settings)
    common = ids(5, 40)
    # They begin with 2 + 8 · 2 blocks and would end with 2 + 8 · 9.
    requests = [greedy([*common, *ids(seed, 12)], 120) for seed in range(10, 18)]
    handles = [engine.submit(request) for request in requests]
    for handle in handles:
        output = handle.wait_result(TIMEOUT_S)
        assert output.token_ids == expected(stepper, list(handle.request.prompt_ids), 120)
    assert engine.snapshot().totals.preemptions > 0
    assert engine.snapshot().blocks.active == 0
    engine.shutdown()


def test_a_restart_finds_prefixes_in_the_swap_file(
    model: Path, stepper: Stepper, tmp_path: Path
) -> None:
    settings: dict[str, object] = {"swap_bytes": 8 << 20, "swap_dir": tmp_path}
    engine = started(model, **settings)
    prompt = ids(6, 70)
    check(engine, stepper, prompt)
    engine.shutdown()
    engine = started(model, **settings)
    assert check(engine, stepper, [*prompt, *ids(7, 5)]) >= 64
    engine.shutdown()


def test_drafts_change_no_token(model: Path, stepper: Stepper) -> None:
    engine = started(model, speculation=True)
    prompt = [*ids(8, 12)] * 6
    for _ in range(2):
        check(engine, stepper, prompt, 60)
    engine.shutdown()
