"""GGUF files of every family: greedy tokens and logits are those of transformers."""

from pathlib import Path

import numpy as np
import pytest
import torch

from tests.parity.described_model import DescribedModel
from tests.parity.family_gguf import EXTRA, write_family_gguf
from tests.parity.loading import load_stepper, read_headers
from tests.parity.reference import answer_logits, logits
from tests.parity.stepper import Run
from tests.parity.tiny_families import TINY_FAMILIES
from tests.parity.tiny_models import CONTEXT, VOCAB, TinyModel, save_tiny_model

ARCHITECTURES = {"ministral3": "mistral3", "olmo3": "olmo2"}
"""Architecture of a GGUF file by the first part of a tiny model's name, where they differ."""

NOT_STORED = {"gemma3-with-images", "gpt2-scaled-layers"}
"""Models with a setting that GGUF has no key for: the scale of Gemma 3's scores, GPT-2's scale by layer."""

CASES = [tiny for tiny in TINY_FAMILIES if tiny.name not in NOT_STORED]
PROMPT_LENGTHS = [40, 33, 90, 150]
NEW_TOKENS = 24


def architecture_of(tiny: TinyModel) -> str:
    first = tiny.name.split("-")[0]
    return ARCHITECTURES.get(first, first)


def test_every_family_is_written() -> None:
    assert {architecture_of(tiny) for tiny in CASES} == set(EXTRA)


@pytest.mark.parametrize("tiny", CASES, ids=lambda tiny: tiny.name)
def test_a_description_computes_the_logits_of_transformers(tiny: TinyModel, tmp_path: Path) -> None:
    model = save_tiny_model(tiny, tmp_path / "checkpoint", torch.float32)
    path = write_family_gguf(tmp_path / "tiny.gguf", architecture_of(tiny), model)
    spec, paths, _ = read_headers(path)
    ids = np.random.default_rng(3).integers(3, 256, 120).tolist()
    expected = logits(model, ids)
    described = DescribedModel(spec, paths, max_model_len=CONTEXT).logits(ids).numpy()
    assert np.abs(described - expected).max() < 2e-4 * np.abs(expected).max()


@pytest.mark.parametrize("tiny", CASES, ids=lambda tiny: tiny.name)
def test_greedy_answers_are_those_of_transformers(tiny: TinyModel, tmp_path: Path) -> None:
    model = save_tiny_model(tiny, tmp_path / "checkpoint", torch.float32)
    path = write_family_gguf(tmp_path / "tiny.gguf", architecture_of(tiny), model)
    stepper = load_stepper(path, block_size=16, rows=4, max_tokens=96, max_model_len=CONTEXT)
    rng = np.random.default_rng(1)
    runs = [Run(rng.integers(3, VOCAB, n).tolist(), NEW_TOKENS) for n in PROMPT_LENGTHS]
    stepper.run(runs)
    for run in runs:
        assert run.tokens == answer_logits(model, run.prompt, run.tokens).argmax(-1).tolist()
