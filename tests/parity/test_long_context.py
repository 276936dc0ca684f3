"""Contexts of 500 to 4,100 tokens, which attention splits every 512, against transformers in fp32."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from engine.api.request import Request, SamplingParams
from tests.parity.accuracy import divergence, margins
from tests.parity.loading import load_stepper
from tests.parity.quantised_models import ARCHITECTURES, write_model
from tests.parity.real_engine import TIMEOUT_S, running
from tests.parity.reference import answer_logits, model_from_gguf
from tests.parity.stepper import Run

CONTEXT = 4224
NEW_TOKENS = 24
BY_NAME = {each.name: each for each in ARCHITECTURES} | {
    "mistral": replace(
        next(each for each in ARCHITECTURES if each.name == "mistral"),
        fields={"attention.sliding_window": 700},  # more than one split, no multiple of a block
    )
}
"""The architectures, with a sliding window larger than a split."""


def prompt(length: int) -> list[int]:
    return np.random.default_rng(length).integers(3, 250, length).tolist()


@pytest.mark.parametrize("name", ["llama", "mistral", "yarn"])
def test_unquantised_answers_at_1k_and_4k_tokens_are_those_of_transformers(
    name: str, tmp_path: Path
) -> None:
    """Prefill in chunks of 256 and of 300 beside decodes; decodes that cross the splits at 512 and 1,024."""
    path = write_model(tmp_path / "long.gguf", "F32", BY_NAME[name], context=CONTEXT)
    stepper = load_stepper(path, rows=5, max_tokens=512, max_model_len=CONTEXT, num_blocks=250)
    runs = [
        Run(prompt(length), NEW_TOKENS, chunks=chunks, sampling={"num_logprobs": 5})
        for length, chunks in ((500, None), (1010, [256]), (1500, [300, 1]), (4090, [256]))
    ]
    stepper.run(runs)
    stepper.executor.close()
    reference = model_from_gguf(path)
    for run in runs:
        exact = answer_logits(reference, run.prompt, run.tokens)
        assert margins(exact, run.tokens).max() <= 0.001
        expected = torch.log_softmax(torch.from_numpy(exact), -1).numpy()
        for top, row in zip(run.top, expected, strict=True):
            for token, logprob in top:
                assert logprob == pytest.approx(row[token], abs=3e-4)


@pytest.mark.parametrize("name", ["llama", "qwen3", "mistral"])
def test_the_default_configuration_at_4k_tokens_departs_only_at_near_ties(
    name: str, tmp_path: Path
) -> None:
    """Quantised weights and KV; the second request reuses 3,904 of the first one's tokens."""
    path = write_model(tmp_path / "long.gguf", "Q4_1", BY_NAME[name], context=CONTEXT)
    reference = model_from_gguf(path)
    shared = prompt(3920)
    prompts = [shared + prompt(100), shared + prompt(101)]
    sampling = SamplingParams(temperature=0.0, max_tokens=NEW_TOKENS, ignore_eos=True, logprobs=20)
    with running(path, pool_tokens=6000) as engine:
        outputs = [
            engine.submit(Request(tuple(ids), sampling)).wait_result(TIMEOUT_S) for ids in prompts
        ]
    assert [output.cached_tokens for output in outputs] == [0, 3904]
    for ids, output in zip(prompts, outputs, strict=True):
        exact = answer_logits(reference, ids, output.token_ids)
        assert margins(exact, output.token_ids).max() <= 0.2
        expected = torch.log_softmax(torch.from_numpy(exact), -1).numpy()
        tops = [
            [(one.token_id, one.logprob) for one in alternatives]
            for alternatives in output.top_logprobs
        ]
        found = [divergence(top, row) for top, row in zip(tops, expected, strict=True)]
        assert np.mean(found) <= 0.0006  # one wrong split of the eight gives 0.02
