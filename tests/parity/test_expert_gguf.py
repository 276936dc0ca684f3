"""GGUF files of families with experts, compared with transformers on the same, dequantised weights."""

from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import PreTrainedModel

from tests.parity.expert_gguf import write_expert_gguf, write_float_gguf
from tests.parity.loading import load_stepper
from tests.parity.recurrent_gguf import write_recurrent_gguf
from tests.parity.reference import answer_logits, top_logprob_error
from tests.parity.stepper import Run
from tests.parity.tiny_experts import TINY_EXPERTS
from tests.parity.tiny_models import CONTEXT, VOCAB, TinyModel, save_tiny_model

ROWS, TOKENS = 4, 80
PERPLEXITY_BOUND = 0.005

NOT_STORED = {"qwen3moe", "qwen3moe-as-is", "gpt-oss", "glm4moe"}
"""Models with settings that files have no key for, and gpt-oss, whose files are compared below."""
IN_GGUF = [tiny for tiny in TINY_EXPERTS if tiny.name not in NOT_STORED]
PROMPT_LENGTHS = [1, 33, 90, 150]
NEW_TOKENS = 24


@pytest.mark.parametrize("tiny", IN_GGUF, ids=lambda tiny: tiny.name)
def test_files_of_every_family_are_the_model_of_the_checkpoint(
    tiny: TinyModel, tmp_path: Path
) -> None:
    model = save_tiny_model(tiny, tmp_path / "checkpoint", torch.float32)
    check(model, write_float_gguf(tmp_path / "tiny.gguf", model))


def test_gate_and_up_may_be_one_tensor(tmp_path: Path) -> None:
    tiny = next(tiny for tiny in IN_GGUF if tiny.name == "qwen35moe")
    model = save_tiny_model(tiny, tmp_path / "checkpoint", torch.float32)
    check(model, write_recurrent_gguf(model, tmp_path / "tiny.gguf", fused_experts=True))


def check(model: PreTrainedModel, path: Path) -> None:
    """Logits of the file's model, and greedy answers in uneven chunks, are those of transformers."""
    stepper = load_stepper(path, block_size=16, rows=5, max_tokens=96, max_model_len=CONTEXT)
    rng = np.random.default_rng(1)
    runs = [Run(rng.integers(3, VOCAB, n).tolist(), NEW_TOKENS) for n in PROMPT_LENGTHS]
    ids = rng.integers(3, VOCAB, 120).tolist()
    scored = Run(ids[:1], len(ids), forced=ids[1:], sampling={"num_logprobs": 20})
    stepper.run([*runs, scored])
    for run in runs:
        assert run.tokens == answer_logits(model, run.prompt, run.tokens).argmax(-1).tolist()
    assert top_logprob_error(model, scored) <= 1e-3


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
