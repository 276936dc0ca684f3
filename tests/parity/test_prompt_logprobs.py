"""Prompt logprobs of the native executor: equal to transformers, and the same bits in any chunking."""

from pathlib import Path

import numpy as np
import pytest
import torch

from tests.parity.loading import load_stepper
from tests.parity.reference import logits
from tests.parity.stepper import Run
from tests.parity.tiny_models import CONTEXT, TINY_MODELS, VOCAB, TinyModel, save_tiny_model


def scores(run: Run) -> tuple[list[float], list[int], list[list[tuple[int, float]]]]:
    return run.prompt_logprobs, run.prompt_ranks, run.prompt_top


@pytest.mark.parametrize("tiny", TINY_MODELS[:2], ids=lambda tiny: tiny.name)
def test_prompt_logprobs_are_log_softmax_of_the_reference(tiny: TinyModel, tmp_path: Path) -> None:
    model = save_tiny_model(tiny, tmp_path, torch.float32)
    stepper = load_stepper(tmp_path, block_size=16, rows=3, max_tokens=96, max_model_len=CONTEXT)
    rng = np.random.default_rng(5)
    runs = [Run(rng.integers(3, VOCAB, n).tolist(), 2, score=20) for n in (1, 70, 230)]
    stepper.run(runs)
    for run in runs:
        reference = torch.log_softmax(torch.from_numpy(logits(model, run.prompt)), -1).numpy()
        targets = run.prompt[1:]
        assert len(run.prompt_logprobs) == len(targets)
        for at, target in enumerate(targets):
            assert run.prompt_logprobs[at] == pytest.approx(reference[at, target], abs=2e-4)
            above = int((reference[at] > reference[at, target] + 2e-4).sum())
            ties = int((np.abs(reference[at] - reference[at, target]) <= 2e-4).sum())
            assert above < run.prompt_ranks[at] <= above + ties
            for token, logprob in run.prompt_top[at]:
                assert logprob == pytest.approx(reference[at, token], abs=2e-4)
    stepper.executor.close()


def test_prompt_logprobs_do_not_depend_on_chunking_or_batch(demo_model: Path) -> None:
    """More positions than the executor has logit rows, so that the output head runs in parts."""
    stepper = load_stepper(demo_model, kv_dtype="f16", rows=5, max_tokens=128)
    rng = np.random.default_rng(6)
    prompt = rng.integers(17, 49000, 100).tolist()
    whole = Run(prompt, 1, score=3)
    stepper.run([whole])
    assert len(whole.prompt_logprobs) == 99
    for chunks in ([1], [7], [32]):
        chunked = Run(prompt, 1, score=3, chunks=chunks)
        others = [Run(rng.integers(17, 49000, 9).tolist(), 5, sampling={"num_logprobs": 1})]
        stepper.run([chunked, *others])
        assert scores(chunked) == scores(whole)
        assert chunked.tokens == whole.tokens
    # They equal the logprobs that sampling reports for the same tokens.
    forced = Run(prompt[:1], 99, forced=prompt[1:], sampling={"num_logprobs": 3})
    stepper.run([forced])
    assert forced.tokens == prompt[1:]
    assert forced.logprobs == whole.prompt_logprobs
    assert forced.top == whole.prompt_top
    stepper.executor.close()
