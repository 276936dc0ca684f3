"""All available dispatch levels agree within rounding, and each is batch-invariant."""

import json
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch

from engine.api.errors import ModelError
from engine.executors.open_model import open_model
from tests.parity.levels import FUSED_LEVELS, LEVELS, available, each_level, forced, require
from tests.parity.loading import load_stepper
from tests.parity.quantised_models import write_model
from tests.parity.single_step import DENIED
from tests.parity.stepper import Run
from tests.parity.tiny_models import TINY_MODELS, VOCAB, save_tiny_model

PROSE = Path(__file__).parent / "data" / "alice.txt"

FORMATS = ["Q4_1", "Q8_0", "Q6_K", "Q4_K", "BF16"]
"""One format per kind of weight panel: 4 and 8 bits, scales per half group, f32 scales, floats."""

BATCHES = [1, 4, 5, 16, 17, 64]
"""Batch sizes around every change of kernel: few rows, one tile of 16, one row more, several tiles."""

Top = list[list[tuple[int, float]]]
Outcome = tuple[list[int], list[float], Top]


@pytest.fixture(scope="module")
def toys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Directory with a small model of each format."""
    directory = tmp_path_factory.mktemp("toys")
    for dtype in FORMATS:
        write_model(directory / f"{dtype}.gguf", dtype)
    return directory


@cache
def answers(path: Path, level: str) -> list[Outcome]:
    """A greedy output and its logprobs, as the first row of each batch size, on a forced level."""
    with forced(level):
        stepper = load_stepper(
            path, kv_dtype="auto", rows=max(BATCHES), max_tokens=512, max_model_len=64
        )
    assert stepper.executor.info.dispatch == level
    rng = np.random.default_rng(5)
    prompt = rng.integers(3, 250, 9).tolist()
    others = [rng.integers(3, 250, 1 + other % 7).tolist() for other in range(max(BATCHES) - 1)]
    outcomes = []
    for count in BATCHES:
        probe = Run(prompt, 4, sampling={"num_logprobs": 3})
        stepper.run([probe, *(Run(other, 4) for other in others[: count - 1])])
        outcomes.append((probe.tokens, probe.logprobs, probe.top))
    stepper.executor.close()
    return outcomes


@each_level
@pytest.mark.parametrize("dtype", FORMATS)
def test_an_answer_has_the_same_bits_in_any_batch(level: str, dtype: str, toys: Path) -> None:
    require(level)
    alone, *batched = answers(toys / f"{dtype}.gguf", level)
    for count, outcome in zip(BATCHES[1:], batched, strict=True):
        assert outcome == alone, f"among {count}"


@pytest.mark.parametrize("level", FUSED_LEVELS)
@pytest.mark.parametrize("dtype", FORMATS)
def test_answers_agree_with_portable_code(level: str, dtype: str, toys: Path) -> None:
    """The same tokens except at near-ties, and logprobs within the error of quantisation."""
    require(level)
    (ours, logprobs, _), *_ = answers(toys / f"{dtype}.gguf", level)
    (theirs, expected, top), *_ = answers(toys / f"{dtype}.gguf", "portable")
    for at, (mine, other) in enumerate(zip(ours, theirs, strict=True)):
        if mine != other:
            assert top[at][0][1] - top[at][1][1] < 0.05, "no near-tie"
            break
        assert abs(logprobs[at] - expected[at]) < 0.05


@pytest.mark.parametrize("dtype", FORMATS)
def test_levels_with_fused_multiply_add_agree_bit_for_bit(dtype: str, toys: Path) -> None:
    """These levels sum exact integers per group and fuse the same multiply-adds in the same order."""
    present = [level for level in FUSED_LEVELS if available(level)]
    if len(present) < 2:
        pytest.skip(f"this machine has only {present} of {FUSED_LEVELS}")
    first, *others = (answers(toys / f"{dtype}.gguf", level) for level in present)
    assert all(other == first for other in others)


@pytest.fixture(scope="module")
def ids(demo_model: Path) -> list[int]:
    """Token ids of prose."""
    return open_model(demo_model).tokenizer.encode(PROSE.read_text()[:150])


@cache
def prose_logprobs(demo_model: Path, level: str, ids: tuple[int, ...]) -> Top:
    """Logprobs of the ten likeliest tokens at each position, computed by decode steps."""
    stepper = load_stepper(demo_model, kv_dtype="auto", dispatch=level)
    run = Run(ids[:1], len(ids) - 1, forced=ids[1:], sampling={"num_logprobs": 10})
    stepper.run([run])
    stepper.executor.close()
    return run.top


@cache
def prompt_logprobs(demo_model: Path, level: str, ids: tuple[int, ...]) -> list[float]:
    """Logprobs of the prose's tokens, computed by prefill."""
    stepper = load_stepper(demo_model, kv_dtype="auto", dispatch=level)
    run = Run(ids, 1, score=0)
    stepper.run([run])
    stepper.executor.close()
    return run.prompt_logprobs


def divergence(ours: list[tuple[int, float]], theirs: list[tuple[int, float]]) -> float:
    """KL divergence of `theirs` from `ours`, over our likeliest tokens and all others as one.

    A token that is not among theirs counts with the probability of their last one, which is larger.
    """
    other, least = dict(theirs), theirs[-1][1]
    p = np.exp([logprob for _, logprob in ours], dtype=np.float64)
    q = np.exp([other.get(token, least) for token, _ in ours], dtype=np.float64)
    p, q = np.append(p, max(1 - p.sum(), 1e-9)), np.append(q, max(1 - q.sum(), 1e-9))
    return float((p * np.log(p / q)).sum())


@pytest.mark.parametrize("level", FUSED_LEVELS)
def test_quantised_levels_differ_by_less_than_quantisation(
    level: str, demo_model: Path, ids: list[int]
) -> None:
    """Portable code rounds products before adding them. A difference in the last bit can change an
    activation's code in a later layer, so logits differ by about the error of quantisation (mean KL 0.001).
    """
    require(level)
    ours = prose_logprobs(demo_model, level, tuple(ids))
    portable = prose_logprobs(demo_model, "portable", tuple(ids))
    divergences = [divergence(mine, theirs) for mine, theirs in zip(ours, portable, strict=True)]
    print(f"mean {np.mean(divergences):.5f}, largest {max(divergences):.5f}")
    assert np.mean(divergences) < 0.005
    # The measure itself: other text's predictions diverge by far more.
    moved = [divergence(mine, theirs) for mine, theirs in zip(ours, portable[1:], strict=False)]
    assert np.mean(moved) > 1.0


@pytest.mark.parametrize("level", FUSED_LEVELS)
def test_prefill_and_decode_agree_on_every_level(
    level: str, demo_model: Path, ids: list[int]
) -> None:
    """Decode and prefill use different kernels and agree; so do levels with fused multiply-adds."""
    require(level)
    read = prompt_logprobs(demo_model, level, tuple(ids))
    written = prose_logprobs(demo_model, level, tuple(ids))
    for token, logprob, top in zip(ids[1:], read, written, strict=True):
        assert dict(top).get(token, logprob) == logprob
    assert read == prompt_logprobs(demo_model, "avx2", tuple(ids))


@pytest.mark.parametrize("level", FUSED_LEVELS)
def test_unquantised_levels_agree_within_rounding(level: str, tmp_path: Path) -> None:
    require(level)
    save_tiny_model(TINY_MODELS[0], tmp_path, torch.bfloat16)
    ids = np.random.default_rng(4).integers(0, VOCAB, 100).tolist()
    logprobs = {}
    for name in (level, "portable"):
        run = Run(ids[:1], len(ids) - 1, forced=ids[1:], sampling={"num_logprobs": 0})
        stepper = load_stepper(tmp_path, dispatch=name)
        stepper.run([run])
        logprobs[name] = run.logprobs
    np.testing.assert_allclose(logprobs[level], logprobs["portable"], atol=2e-4)


@each_level
def test_a_level_is_forced_by_the_environment(level: str, toys: Path) -> None:
    path = toys / "Q4_1.gguf"
    with forced(level):
        if available(level):
            stepper = load_stepper(path, max_model_len=64)
            assert stepper.executor.info.dispatch == level
            stepper.executor.close()
        else:
            with pytest.raises(ModelError, match=f"cannot run dispatch level {level}, because"):
                load_stepper(path, max_model_len=64)


@pytest.mark.soak  # single-stepping takes half a minute for each case
@pytest.mark.parametrize("dtype", ["Q4_1", "BF16"])
@pytest.mark.parametrize(
    ("level", "tokens", "allowed"),
    [
        ("portable", 2, {"sse"}),
        ("avx2", 9, {"sse", "vex"}),
        ("avxvnni", 9, {"sse", "vex", "vnni"}),
        ("avx512", 9, {"sse", "vex", "vnni", "evex"}),
    ],
)
def test_55_a_level_executes_no_instruction_of_a_higher_one(
    level: str, tokens: int, allowed: set[str], dtype: str, tmp_path: Path
) -> None:
    """Every instruction of a step is looked at, so that a level that this machine exceeds can be tested."""
    require(level)
    path = write_model(tmp_path / "small.gguf", dtype, hidden=64, ffn=64)
    command = [sys.executable, "-m", "tests.parity.single_step", str(path), level, str(tokens)]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    if process.returncode == DENIED:
        pytest.skip("ptrace is not permitted here")
    assert process.returncode == 0, process.stderr
    traced = json.loads(process.stdout)
    print(traced)
    assert traced["instructions"] > 10_000
    assert traced["encodings"].keys() <= allowed
    assert level == "portable" or traced["encodings"]["evex" if level == "avx512" else "vex"] > 100
    assert level != "avxvnni" or dtype == "BF16" or traced["encodings"]["vnni"] > 0


def test_an_unknown_level_is_refused(toys: Path) -> None:
    with forced("sse9"), pytest.raises(ModelError, match="no dispatch level"):
        load_stepper(toys / "Q4_1.gguf", max_model_len=64)


REFUSED = """
import ctypes, json, sys
from pathlib import Path

class Stack(ctypes.Structure):
    _fields_ = [("start", ctypes.c_void_p), ("flags", ctypes.c_int), ("size", ctypes.c_size_t)]

memory = ctypes.create_string_buffer(2048)
stack = Stack(ctypes.addressof(memory), 0, 2048)
assert ctypes.CDLL(None, use_errno=True).sigaltstack(ctypes.byref(stack), None) == 0

from engine import _core
from tests.parity.loading import load_stepper
from tests.parity.stepper import Run

stepper = load_stepper(Path(sys.argv[1]), kv_dtype="auto", rows=20, max_model_len=64)
runs = [Run([3 + row, 5, 9], 8, sampling={"num_logprobs": 0}) for row in range(20)]
stepper.run(runs)
level = stepper.executor.info.dispatch
print(json.dumps([level, _core.cpu_features()["obstacles"], runs[0].tokens, runs[0].logprobs]))
"""


def test_56_a_process_that_may_not_use_amx_computes_on_the_next_level(toys: Path) -> None:
    """Linux denies AMX to a process whose alternate signal stack is too small for the tile state.

    There every tile instruction is illegal, so the steps, with enough rows for tiles, use none. On
    processors without AMX the same process runs on the best level.
    """
    path = toys / "Q4_1.gguf"
    process = subprocess.run(
        [sys.executable, "-c", REFUSED, str(path)], capture_output=True, text=True, check=False
    )
    assert process.returncode == 0, process.stderr
    level, obstacles, tokens, logprobs = json.loads(process.stdout)
    if available("amx"):
        assert "alternate signal stack" in obstacles["amx"]
    assert level == next(one for one in LEVELS[1:] if available(one))
    with forced(level):
        stepper = load_stepper(path, kv_dtype="auto", rows=20, max_model_len=64)
    runs = [Run([3 + row, 5, 9], 8, sampling={"num_logprobs": 0}) for row in range(20)]
    stepper.run(runs)
    stepper.executor.close()
    assert (tokens, logprobs) == (runs[0].tokens, runs[0].logprobs)
