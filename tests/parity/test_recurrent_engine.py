"""An engine of a model with recurrent layers: greedy tokens are the same whatever a state is restored from.

The expected tokens are those of `Stepper`, which computes each prompt from its first token.
"""

from pathlib import Path

import numpy as np
import pytest
import torch

from engine.api.config import EngineConfig
from engine.api.request import Request, SamplingParams
from engine.runtime.engine import AsyncPravahaEngine
from tests.parity.loading import load_stepper
from tests.parity.recurrent_gguf import write_recurrent_gguf
from tests.parity.stepper import Run, Stepper
from tests.parity.tiny_models import VOCAB, TinyModel, save_tiny_model
from tests.parity.tiny_recurrent import TINY_RECURRENT

BLOCK = 16
IN_GGUF = [tiny for tiny in TINY_RECURRENT if not tiny.name.endswith("biased")]
TIMEOUT_S = 300


@pytest.fixture(scope="module", params=IN_GGUF, ids=lambda tiny: tiny.name)
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tiny")
    tiny: TinyModel = request.param
    return write_recurrent_gguf(save_tiny_model(tiny, folder, torch.float32), folder / "model.gguf")


@pytest.fixture(scope="module")
def stepper(model: Path) -> Stepper:
    return load_stepper(model, block_size=BLOCK, rows=2, max_tokens=64, max_model_len=256)


def started(model: Path, **settings: object) -> AsyncPravahaEngine:
    defaults: dict[str, object] = {
        "block_size": BLOCK,
        "kv_cache_bytes": 8 << 20,
        "max_num_batched_tokens": 64,
        "state_slots": 24,
        "state_interval": 32,
        "speculation": False,
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


def test_turns_forks_and_equal_prompts(model: Path, stepper: Stepper) -> None:
    engine = started(model)
    prompt = ids(1, 70)
    assert check(engine, stepper, prompt, 40) == 0
    answer = list(expected(stepper, prompt, 40))
    assert check(engine, stepper, prompt) == 64
    assert check(engine, stepper, [*prompt, *answer, *ids(2, 9)]) == 96
    assert check(engine, stepper, [*prompt[:50], *ids(3, 30)]) == 32
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


def test_many_requests_in_few_slots_and_a_small_pool(model: Path, stepper: Stepper) -> None:
    engine = started(model)
    block, state = engine.snapshot().blocks.block_bytes, engine.snapshot().states.slot_bytes
    engine.shutdown()
    engine = started(
        model, kv_cache_bytes=20 * block + 6 * state, state_slots=6, swap_bytes=4 << 20
    )
    common = ids(5, 40)
    requests = [greedy([*common, *ids(seed, 12)], 50) for seed in range(10, 18)]
    handles = [engine.submit(request) for request in requests]
    for handle in handles:
        output = handle.wait_result(TIMEOUT_S)
        assert output.token_ids == expected(stepper, list(handle.request.prompt_ids), 50)
    assert engine.snapshot().totals.preemptions > 0
    engine.shutdown()


def test_a_restart_reads_states_from_their_files(
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


def test_drafts_take_the_state_back(model: Path, stepper: Stepper) -> None:
    engine = started(model, speculation=True)
    prompt = [*ids(8, 12)] * 6
    for _ in range(3):
        check(engine, stepper, prompt, 60)
    engine.shutdown()
