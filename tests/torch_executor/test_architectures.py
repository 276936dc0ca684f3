"""Every architecture, compared with transformers: wrong attention raises no error (transformers #48296)."""

import numpy as np
import pytest

from tests.fakes.tiny_transformers import TINY, VOCAB, greedy, save_tiny, tiny_hf_model
from tests.parity.stepper import Run
from tests.torch_executor.loaded import load_torch, stepper

NEW_TOKENS = 24
PROMPTS = [1, 7, 8, 9, 23, 40]
"""Prompt lengths around the block size, and beyond the sliding window."""
CHUNKS = [None, [3], [1], [8], [5, 9], [32]]


@pytest.mark.parametrize("name", TINY)
def test_greedy_equals_generate_in_chunks_and_mixed_batches(tmp_path, name):
    model = tiny_hf_model(name)
    prompts = [
        np.random.default_rng(length).integers(3, VOCAB, length).tolist() for length in PROMPTS
    ]
    expected = [greedy(model, prompt, NEW_TOKENS) for prompt in prompts]
    executor = load_torch(save_tiny(tmp_path / name, model))
    sequences = [
        Run(prompt, NEW_TOKENS, arrival=2 * index, chunks=chunks)
        for index, (prompt, chunks) in enumerate(zip(prompts, CHUNKS, strict=True))
    ]
    stepper(executor).run(sequences)
    executor.close()
    assert [sequence.tokens for sequence in sequences] == expected
