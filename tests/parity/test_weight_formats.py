"""Every weight format, compared with transformers in fp32 on the weights dequantised by ggml's package."""

from pathlib import Path

import numpy as np
import pytest
import torch

from tests.parity.loading import load_stepper
from tests.parity.quantised_models import MEASURED, RANDOM, write_model
from tests.parity.reference import answer_logits, model_from_gguf
from tests.parity.stepper import Run

ROWS, TOKENS = 4, 100
PERPLEXITY_BOUND = 0.005


@pytest.mark.parametrize("dtype", [*MEASURED, *RANDOM])
def test_48_perplexity_is_that_of_the_weights_in_every_format(dtype: str, tmp_path: Path) -> None:
    """Perplexity of text that the model itself samples at temperature 1, with the default KV type."""
    path = write_model(tmp_path / "tiny.gguf", dtype)
    stepper = load_stepper(path, kv_dtype="auto", rows=ROWS)
    assert dtype in stepper.executor.info.weight_format
    drawn = {"temperature": 1.0, "num_logprobs": 0}
    runs = [Run([5 + row], TOKENS, sampling={**drawn, "seed": row}) for row in range(ROWS)]
    stepper.run(runs)
    stepper.executor.close()
    reference = model_from_gguf(path)
    losses = []
    for run in runs:
        exact = torch.log_softmax(
            torch.from_numpy(answer_logits(reference, run.prompt, run.tokens)), -1
        ).numpy()
        losses.append((run.logprobs, exact[np.arange(TOKENS), run.tokens]))
    ours, theirs = -np.array(losses).mean((0, 2))
    print(f"{dtype}: perplexity {np.exp(theirs):.2f}, × {np.exp(ours - theirs):.5f}")
    assert 2 < np.exp(theirs) < 0.8 * reference.config.vocab_size  # neither degenerate nor uniform
    assert abs(np.exp(ours - theirs) - 1) <= PERPLEXITY_BOUND
