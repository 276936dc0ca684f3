"""Activations are quantized where they are computed, those of few rows afterwards: the bits are equal."""

from collections.abc import Callable
from pathlib import Path

import gguf
import numpy as np
import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel

from benchmarks.accuracy import rewrite
from tests.parity.expert_gguf import write_expert_gguf
from tests.parity.family_gguf import write_family_gguf
from tests.parity.loading import load_stepper
from tests.parity.stepper import Run
from tests.parity.tiny_models import CONTEXT, SHAPE, VOCAB, randomize

TOKENS = 60
LEVELS = ["portable", "auto"]


def _plain_gelu(path: Path) -> None:
    """GPT-2: a feed-forward without a gate."""
    torch.manual_seed(4)
    config = GPT2Config(
        vocab_size=VOCAB,
        n_embd=SHAPE["hidden_size"],
        n_layer=2,
        n_head=6,
        n_positions=CONTEXT,
        bos_token_id=0,
        eos_token_id=1,
    )
    model = GPT2LMHeadModel(config)
    randomize(model)
    floats = write_family_gguf(path.with_suffix(".floats"), "gpt2", model.eval())
    rewrite(floats, path, gguf.GGMLQuantizationType.Q8_0)


def _clamped_swiglu(path: Path) -> None:
    """gpt-oss: experts."""
    write_expert_gguf(path, "gpt-oss", "MXFP4")


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("write", [_plain_gelu, _clamped_swiglu])
def test_a_prompt_has_the_bits_of_its_tokens_one_by_one(
    write: Callable[[Path], None], level: str, tmp_path: Path
) -> None:
    path = tmp_path / "tiny.gguf"
    write(path)
    ids = np.random.default_rng(1).integers(3, 250, TOKENS).tolist()
    scored = {"num_logprobs": 5}
    one_by_one = Run(ids[:1], TOKENS, forced=ids[1:], sampling=scored)
    whole = Run(ids, 1, sampling=scored)
    in_chunks = Run(ids, 1, chunks=[23], sampling=scored)
    stepper = load_stepper(path, rows=1, dispatch=level)
    for run in (one_by_one, whole, in_chunks):
        stepper.run([run])
    stepper.executor.close()
    assert whole.top[0] == in_chunks.top[0] == one_by_one.top[-1]
