"""Regression tests of the native executor for numerical bugs of other engines (`docs/reliability.md`)."""

import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from tests.fakes.tiny_gguf import write_tiny_gguf
from tests.parity.accuracy import margins
from tests.parity.loading import load_stepper
from tests.parity.quantised_models import write_model
from tests.parity.reference import answer_logits, model_from_gguf
from tests.parity.stepper import Run
from tests.parity.tiny_models import CONTEXT, TINY_MODELS, VOCAB, save_tiny_model

TINY = {tiny.name: tiny for tiny in TINY_MODELS}
DIFFERENT_POSITIONS = ["llama", "llama-linear", "llama-llama3", "llama-yarn", "mistral"]
"""Models with plain RoPE, each RoPE scaling, and a sliding window of 20."""


def prompts(count: int, length: int) -> list[list[int]]:
    return np.random.default_rng(count).integers(3, VOCAB, (count, length)).tolist()


def test_39_a_greedy_answer_alone_and_among_4_5_16_17_and_64_rows(demo_model: Path) -> None:
    """The number of rows selects kernel block sizes and work sharing, which must not change a bit."""
    stepper = load_stepper(demo_model, kv_dtype="auto", rows=64, max_model_len=64)
    rng = np.random.default_rng(39)
    first, *others = rng.integers(17, 49000, (64, 5)).tolist()
    outcomes = []
    for rows in (1, 4, 5, 16, 17, 64):
        runs = [Run(first, 3, sampling={"num_logprobs": 5})]
        runs += [Run(other, 3) for other in others[: rows - 1]]
        stepper.run(runs)
        outcomes.append((runs[0].tokens, runs[0].logprobs, runs[0].top))
    stepper.executor.close()
    assert all(outcome == outcomes[0] for outcome in outcomes)


@pytest.mark.parametrize("rows", [12, 16])
def test_40_a_long_decode_among_many_rows_equals_the_reference(rows: int, tmp_path: Path) -> None:
    """The shape of a split-KV bug (vLLM #48076): long contexts in a batch.

    Attention splits contexts every 512 tokens: the first answers cross a split, the others begin behind
    one, and the last ones end in the third.
    """
    path = write_model(tmp_path / "long.gguf", "F32", context=1152)
    stepper = load_stepper(path, rows=rows, max_model_len=1152, num_blocks=rows * 36)
    rng = np.random.default_rng(rows)
    lengths = np.linspace(490, 990, rows).astype(int)
    runs = [Run(rng.integers(3, 250, length).tolist(), 60) for length in lengths]
    stepper.run(runs)
    stepper.executor.close()
    reference = model_from_gguf(path)
    for run in runs[:: rows // 4]:
        exact = answer_logits(reference, run.prompt, run.tokens)
        assert margins(exact, run.tokens).max() <= 0.001


@pytest.mark.parametrize("name", DIFFERENT_POSITIONS)
def test_46_the_last_position_of_the_context_equals_the_reference(
    name: str, tmp_path: Path
) -> None:
    model = save_tiny_model(TINY[name], tmp_path, torch.float32)
    stepper = load_stepper(tmp_path, block_size=16, rows=2, max_tokens=96, max_model_len=CONTEXT)
    runs = [Run(prompt, 8) for prompt in prompts(2, CONTEXT - 8)]
    stepper.run(runs)
    stepper.executor.close()
    for run in runs:
        assert run.tokens == answer_logits(model, run.prompt, run.tokens).argmax(-1).tolist()


def test_47_nan_logits_fail_one_request(tmp_path: Path) -> None:
    """A NaN embedding fails the request that uses it, not other rows or later users of its blocks."""
    model = save_tiny_model(TINY["mistral"], tmp_path, torch.float32)
    tensors = load_file(tmp_path / "model.safetensors")
    tensors["model.embed_tokens.weight"][200] = float("nan")
    save_file(tensors, tmp_path / "model.safetensors", metadata={"format": "pt"})
    stepper = load_stepper(tmp_path, rows=2)
    healthy, failing = Run([5, 6, 7], 4), Run([5, 200, 7], 4)
    stepper.run([healthy, failing])
    assert failing.failed
    assert failing.tokens == []
    assert not healthy.failed
    expected = answer_logits(model, healthy.prompt, healthy.tokens).argmax(-1).tolist()
    assert healthy.tokens == expected
    # The blocks of the failed request are reused by the next one.
    again = [Run([5, 6, 7], 4), Run([5, 6, 7], 4)]
    stepper.run(again)
    stepper.executor.close()
    assert [run.tokens for run in again] == [expected, expected]


def test_57_two_executors_in_one_process_are_independent(tmp_path: Path) -> None:
    """Each executor has its own threads, pool and scratch memory; two threads run them concurrently."""
    path = write_tiny_gguf(tmp_path / "tiny.gguf", seed=57)

    def answer(out: list[list[int]]) -> None:
        stepper = load_stepper(path, rows=4, max_model_len=128)
        runs = [Run([3 + row, 5, 9], 100, sampling={"num_logprobs": 2}) for row in range(4)]
        stepper.run(runs)
        stepper.executor.close()
        out += [run.tokens for run in runs]

    alone: list[list[int]] = []
    answer(alone)
    together: list[list[list[int]]] = [[], []]
    threads = [threading.Thread(target=answer, args=(out,)) for out in together]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert together == [alone, alone]


CONFINED = """
import os
import sys
from pathlib import Path

confined = sys.argv[2] == "confined"
core = min(os.sched_getaffinity(0))
if confined:
    os.sched_setaffinity(0, {core})

from engine import _core
from tests.parity.loading import load_stepper
from tests.parity.stepper import Run

stepper = load_stepper(Path(sys.argv[1]), rows=4, max_model_len=128)
if confined:
    features = _core.cpu_features()
    assert (features["threads"], features["cores"], features["affinity"]) == (1, [core], [core])
    assert stepper.executor.info.threads == 1
    for task in os.listdir("/proc/self/task"):
        assert os.sched_getaffinity(int(task)) == {core}
run = Run([3, 5, 9], 50)
stepper.run([run])
stepper.executor.close()
print(run.tokens)
"""


def test_57_threads_stay_inside_the_affinity_mask(tmp_path: Path) -> None:
    """With an affinity mask of one core: one thread, and the same output (vLLM #10556, #10971)."""
    path = write_tiny_gguf(tmp_path / "tiny.gguf", seed=57)
    answers = []
    for mode in ("free", "confined"):
        command = [sys.executable, "-c", CONFINED, str(path), mode]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        answers.append(done.stdout)
    assert answers[0] == answers[1] != ""
