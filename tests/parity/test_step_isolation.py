"""A running step reads nothing of the caller's arrays: another thread may change all of them meanwhile."""

import sys
import threading
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from engine.api.config import EngineConfig
from engine.executors.base import SAMPLING_DTYPE, StepPlan, StepResult
from engine.executors.native import NativeExecutor
from engine.executors.open_model import open_model
from tests.parity.quantised_models import write_model

TOKENS = 250
ATTEMPTS = 100


@pytest.fixture
def executor(tmp_path: Path):
    model = open_model(write_model(tmp_path / "tiny.gguf", "F32"))
    config = EngineConfig(
        tmp_path, "tiny", kv_dtype="f16", threads=1, dispatch="portable", max_num_seqs=1
    )
    loaded = NativeExecutor.load(
        model.spec, model.paths, config, num_blocks=8, max_model_len=256, progress=lambda _: None
    )
    yield loaded, model.spec.vocab_size
    loaded.close()


def penalised_prompt(vocab: int) -> StepPlan:
    """A prompt whose next token depends on every array: penalties, biases and a mask."""
    ids = np.random.default_rng(3).integers(0, vocab, TOKENS).astype(np.int32)
    sampling = np.zeros(1, SAMPLING_DTYPE)
    for name, value in {
        "temperature": 1.0, "top_p": 1.0, "repetition_penalty": 1.3, "presence_penalty": 0.5,
        "frequency_penalty": 0.2, "num_logprobs": 5, "seed": 11,
    }.items():  # fmt: skip
        sampling[name] = value
    return StepPlan(
        rows=np.zeros(1, np.int32),
        query_start=np.array([0, TOKENS], np.int32),
        token_ids=ids,
        positions=np.arange(TOKENS, dtype=np.int32),
        needs_logits=np.ones(1, np.uint8),
        block_tables=np.arange(8, dtype=np.int32)[None],
        token_table=np.pad(ids, (0, 256 - TOKENS))[None],
        num_tokens=np.full(1, TOKENS, np.int32),
        penalty_start=np.full(1, TOKENS // 2, np.int32),
        sampling=sampling,
        bias_rows=np.zeros(20, np.int32),
        bias_ids=np.arange(20, dtype=np.int32),
        bias_values=np.linspace(-3, 3, 20, dtype=np.float32),
        mask_rows=np.zeros(1, np.int32),
        mask_bits=np.full((1, -(-vocab // 32)), 0x0FF0FFF7, np.uint32),
    )


def bits(result: StepResult) -> dict[str, bytes]:
    sampled = ("sampled", "logprobs", "failed", "accepted")
    tops = {name: getattr(result, name)[:, :5].tobytes() for name in ("top_ids", "top_logprobs")}
    return {name: getattr(result, name).tobytes() for name in sampled} | tops


def execute_while_changing(executor: NativeExecutor, plan: StepPlan) -> tuple[bool, StepResult]:
    """Whether all arrays of the plan were overwritten while the step ran, and its result."""
    started, results = threading.Event(), []

    def step() -> None:
        started.set()  # the waiting thread gets the GIL when the core releases it
        results.append(executor.execute(plan))

    thread = threading.Thread(target=step)
    thread.start()
    assert started.wait(60)
    running = not results
    for field in fields(plan):
        array = getattr(plan, field.name)
        if isinstance(array, np.ndarray) and array.size:  # images are a tuple, which cannot change
            array.view(np.uint8)[:] = 0x7B  # ids far beyond the vocabulary and the pool
    thread.join()
    assert results, "the step failed"
    return running, results[0]


def test_arrays_that_change_during_a_step_change_nothing(executor) -> None:
    native, vocab = executor
    undisturbed = bits(native.execute(penalised_prompt(vocab)))
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1000)  # threads switch where they block or release the GIL, nowhere else
    try:
        for _ in range(ATTEMPTS):  # a busy machine may wake this thread after the step
            running, result = execute_while_changing(native, penalised_prompt(vocab))
            assert bits(result) == undisturbed
            if running:
                return
    finally:
        sys.setswitchinterval(interval)
    pytest.fail(f"no step of {ATTEMPTS} was seen running")
