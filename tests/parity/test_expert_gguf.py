"""GGUF files with quantised experts, compared with transformers on the dequantised weights."""

from pathlib import Path

import numpy as np
import pytest
import torch

from tests.parity.expert_gguf import write_expert_gguf
from tests.parity.loading import load_stepper
from tests.parity.reference import answer_logits
from tests.parity.stepper import Run

ROWS, TOKENS = 4, 80
PERPLEXITY_BOUND = 0.005


@pytest.mark.parametrize(
    ("architecture", "dtype"),
    [
        ("qwen3moe", "F32"),
        ("qwen3moe", "Q8_0"),
        ("qwen3moe", "Q4_K"),
        ("gpt-oss", "F32"),
        ("gpt-oss", "MXFP4"),
    ],
)
def test_perplexity_is_that_of_the_dequantised_weights(
    architecture: str, dtype: str, tmp_path: Path
) -> None:
    """Of text that the model itself samples at temperature 1."""
    path = tmp_path / "tiny.gguf"
    reference = write_expert_gguf(path, architecture, dtype)
    stepper = load_stepper(path, rows=ROWS)
    drawn = {"temperature": 1.0, "num_logprobs": 0}
    runs = [Run([5 + row], TOKENS, sampling={**drawn, "seed": row}) for row in range(ROWS)]
    stepper.run(runs)
    stepper.executor.close()
    ours = np.mean([run.logprobs for run in runs])
    theirs = np.mean(
        [
            torch.log_softmax(
                torch.from_numpy(answer_logits(reference, run.prompt, run.tokens)), -1
            ).numpy()[np.arange(TOKENS), run.tokens]
            for run in runs
        ]
    )
    bound = 1e-4 if dtype == "F32" else PERPLEXITY_BOUND
    assert abs(np.exp(theirs - ours) - 1) <= bound
