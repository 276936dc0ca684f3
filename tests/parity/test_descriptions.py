"""The description of a checkpoint, interpreted naively, computes the logits of transformers."""

from pathlib import Path

import numpy as np
import pytest
import torch

from tests.parity.described_model import DescribedModel
from tests.parity.loading import read_headers
from tests.parity.reference import logits
from tests.parity.tiny_families import TINY_FAMILIES
from tests.parity.tiny_models import CONTEXT, TINY_MODELS, VOCAB, TinyModel, save_tiny_model
from tests.parity.tiny_recurrent import TINY_RECURRENT

MODELS = TINY_MODELS + TINY_FAMILIES + TINY_RECURRENT


@pytest.mark.parametrize("tiny", MODELS, ids=lambda tiny: tiny.name)
def test_a_description_computes_the_logits_of_transformers(tiny: TinyModel, tmp_path: Path) -> None:
    model = save_tiny_model(tiny, tmp_path, torch.float32)
    spec, paths, _ = read_headers(tmp_path)
    ids = np.random.default_rng(3).integers(3, VOCAB - 1, 120).tolist()
    expected = logits(model, ids)
    described = DescribedModel(spec, paths, max_model_len=CONTEXT).logits(ids).numpy()
    assert np.abs(described - expected).max() < 2e-4 * np.abs(expected).max()
