"""Every dispatch level that this machine has computes the same, within rounding."""

from pathlib import Path

import numpy as np
import pytest
import torch

from engine import _core
from engine.errors import ModelError
from engine.models.loader import open_model
from tests.parity.loading import load_stepper
from tests.parity.stepper import Run
from tests.parity.tiny_models import TINY_MODELS, VOCAB, save_tiny_model

PROSE = Path(__file__).parent / "data" / "alice.txt"
LEVELS = ["avx512", "avx2", "portable"]
AVAILABLE = _core.cpu_features()["levels"]


@pytest.fixture(scope="module")
def ids(demo_model: Path) -> list[int]:
    """Some prose."""
    return open_model(demo_model).tokenizer.encode(PROSE.read_text()[:150])


def prose_logprobs(demo_model: Path, level: str, ids: list[int]) -> list[list[tuple[int, float]]]:
    """Logprobs of the ten likeliest tokens at each position."""
    stepper = load_stepper(demo_model, dispatch=level)
    assert stepper.executor.info.dispatch == level
    run = Run(ids[:1], len(ids) - 1, forced=ids[1:], sampling={"num_logprobs": 10})
    stepper.run([run])
    stepper.executor.close()
    return run.top


@pytest.fixture(scope="module")
def portable(demo_model: Path, ids: list[int]) -> list[list[tuple[int, float]]]:
    return prose_logprobs(demo_model, "portable", ids)


def require(*levels: str) -> None:
    for level in levels:
        if level not in AVAILABLE:
            pytest.skip(f"this machine has no {level}")


def test_avx2_and_avx512_agree_bit_for_bit(demo_model: Path, ids: list[int]) -> None:
    """Both sum exact integers within a group and fuse the same multiply-adds in the same order."""
    require("avx512", "avx2")
    avx512 = prose_logprobs(demo_model, "avx512", ids)
    assert avx512 == prose_logprobs(demo_model, "avx2", ids)


@pytest.mark.parametrize("level", LEVELS[:-1])
def test_quantised_levels_differ_by_less_than_quantisation(
    level: str,
    demo_model: Path,
    ids: list[int],
    portable: list[list[tuple[int, float]]],
) -> None:
    """Portable code rounds products before it adds them. A last bit can move a code of a later layer by
    one step, so logits differ by about what quantisation itself costs (mean KL 0.001)."""
    require(level)
    divergences = []
    ours = prose_logprobs(demo_model, level, ids)
    for mine, theirs in zip(ours, portable, strict=True):
        other = dict(theirs)
        shared = [(p, other[token]) for token, p in mine if token in other]
        logs = np.array(shared, np.float64)
        divergences.append(abs((np.exp(logs[:, 0]) * (logs[:, 0] - logs[:, 1])).sum()))
    assert np.mean(divergences) < 0.02


@pytest.mark.parametrize("level", LEVELS[:-1])
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


@pytest.mark.parametrize("level", LEVELS)
def test_a_level_is_forced_by_the_environment(
    level: str, demo_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PRAVAHA_DISPATCH", level)
    if level in AVAILABLE:
        stepper = load_stepper(demo_model)
        assert stepper.executor.info.dispatch == level
        stepper.executor.close()
    else:
        with pytest.raises(ModelError, match="cannot run dispatch level"):
            load_stepper(demo_model)


def test_an_unknown_level_is_refused(demo_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRAVAHA_DISPATCH", "sse9")
    with pytest.raises(ModelError, match="no dispatch level"):
        load_stepper(demo_model)
