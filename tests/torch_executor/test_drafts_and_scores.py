"""Runs with several logit rows in the torch executor: draft tokens and prompt logprobs."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.fakes.tiny_transformers import VOCAB, save_tiny, tiny_hf_model
from tests.parity.drafting import guesser
from tests.parity.stepper import Run, Stepper
from tests.torch_executor.loaded import NUM_BLOCKS, load_torch, torch_config

SAMPLINGS = {
    "greedy": {"num_logprobs": 2},
    "seeded": {"temperature": 0.9, "top_p": 0.9, "seed": 5},
    "penalised": {
        "num_logprobs": 1,
        "temperature": 0.7,
        "repetition_penalty": 1.3,
        "frequency_penalty": 0.4,
        "dry_multiplier": 2.0,
        "dry_base": 1.75,
        "dry_penalty_last_n": -1,
        "seed": 7,
    },
}


@pytest.fixture(scope="module")
def model():
    return tiny_hf_model("llama")


@pytest.fixture(scope="module")
def stepper(model, tmp_path_factory):
    executor = load_torch(save_tiny(tmp_path_factory.mktemp("llama"), model))
    config = torch_config(Path("unused"), max_num_batched_tokens=64)
    yield Stepper(executor, config, num_blocks=NUM_BLOCKS, max_model_len=128)
    executor.close()


@pytest.mark.parametrize("kind", SAMPLINGS)
def test_with_and_without_drafts(stepper, kind):
    rng = np.random.default_rng(3)
    bias = [(int(token), 2.0) for token in rng.integers(3, VOCAB, 3)]
    plain = [
        Run(rng.integers(3, VOCAB, n).tolist(), 24, sampling=SAMPLINGS[kind], bias=bias)
        for n in (1, 20, 33)
    ]
    stepper.run(plain)
    for right in (1.0, 0.6, 0.0):
        runs = [
            replace(
                run,
                tokens=[],
                logprobs=[],
                top=[],
                drafts=guesser(
                    run.tokens, len(run.prompt), VOCAB, length=5, right=right, seed=number
                ),
            )
            for number, run in enumerate(plain)
        ]
        stepper.run(runs)
        for run, alone in zip(runs, plain, strict=True):
            assert run.tokens == alone.tokens
            np.testing.assert_allclose(run.logprobs, alone.logprobs, atol=1e-4)
            assert [[one for one, _ in top] for top in run.top] == [
                [one for one, _ in top] for top in alone.top
            ]
        assert (sum(run.accepted for run in runs) > 0) == (right > 0)


def test_prompt_logprobs_are_log_softmax(stepper, model):
    rng = np.random.default_rng(4)
    runs = [
        Run(rng.integers(3, VOCAB, n).tolist(), 3, score=20, chunks=chunks)
        for n, chunks in ((1, None), (40, [7]), (100, None))
    ]
    stepper.run(runs)
    for run in runs:
        with torch.no_grad():
            exact = model(torch.tensor([run.prompt])).logits[0].float().log_softmax(-1).numpy()
        assert len(run.prompt_logprobs) == len(run.prompt) - 1
        for at, target in enumerate(run.prompt[1:]):
            assert run.prompt_logprobs[at] == pytest.approx(exact[at, target], abs=2e-4)
            above = int((exact[at] > exact[at, target] + 2e-4).sum())
            ties = int((np.abs(exact[at] - exact[at, target]) <= 2e-4).sum())
            assert above < run.prompt_ranks[at] <= above + ties
            for token, logprob in run.prompt_top[at]:
                assert logprob == pytest.approx(exact[at, token], abs=2e-4)
