"""Prose is scored in parts, each after what a prompt begins with."""

from pathlib import Path

import numpy as np
import pytest
import torch

from tests.parity.accuracy import score_prose
from tests.parity.loading import load_stepper
from tests.parity.reference import logits
from tests.parity.tiny_models import TINY_MODELS, VOCAB, save_tiny_model

LENGTH = 20


def test_parts_are_scored_after_the_prefix(tmp_path: Path) -> None:
    model = save_tiny_model(TINY_MODELS[0], tmp_path, torch.float32)
    stepper = load_stepper(tmp_path, rows=3)
    prefix, ids = [0], np.random.default_rng(2).integers(3, VOCAB, 2 * LENGTH + 1).tolist()
    (score,) = score_prose([stepper], model, ids, prefix=prefix, length=LENGTH)
    stepper.executor.close()
    losses = []
    for start in (0, LENGTH):
        part = [*prefix, *ids[start : start + LENGTH + 1]]
        rows = torch.log_softmax(torch.from_numpy(logits(model, part)), -1).numpy()
        losses += [-rows[at - 1, part[at]] for at in range(2, len(part))]
    assert score.tokens == len(losses) == 2 * LENGTH
    assert score.perplexity == pytest.approx(float(np.exp(np.mean(losses))), rel=1e-4)
    assert score.perplexity_ratio == pytest.approx(1, abs=1e-4)
