"""Prompt logprobs of the native executor: compared with transformers, and independent of chunking."""

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from app.runtime.perplexity import score_text, windows
from engine.api.config import EngineConfig
from engine.clients.in_process import InProcessClient
from engine.runtime.engine import AsyncPravahaEngine
from tests.parity.accuracy import PROSE
from tests.parity.loading import load_stepper
from tests.parity.reference import llama_from_gguf, logits
from tests.parity.stepper import Run
from tests.parity.tiny_models import CONTEXT, TINY_MODELS, VOCAB, TinyModel, save_tiny_model


@pytest.fixture
def client(demo_model: Path) -> Iterator[InProcessClient]:
    engine = AsyncPravahaEngine(EngineConfig(demo_model, "demo", kv_cache_bytes=64 << 20))
    client = InProcessClient(engine)
    engine.start()
    engine.wait_ready(60)
    yield client
    client.close()


def test_a_text_scored_in_windows_has_the_perplexity_of_the_reference(
    client: InProcessClient, demo_model: Path
) -> None:
    """Perplexity within 0.5 % of transformers in fp32, the bound that quantised prose has.

    A text of a quarter the length says nothing about that: int8 moves it by up to 0.75 % either way.
    """
    text = PROSE.read_text()[:5600]
    ids = client.tokenize(text)
    score = score_text(client, text, context=128, stride=64)
    reference = llama_from_gguf(demo_model)
    total = 0.0
    for window in windows(len(ids), 128, 64):
        part = ids[window.start : window.stop]
        exact = torch.log_softmax(torch.from_numpy(logits(reference, part[:-1])).double(), -1)
        own = exact[torch.arange(len(part) - 1), part[1:]]
        total -= float(own[window.first - window.start - 1 :].sum())
    assert score.tokens == len(ids) - 1
    assert score.windows > 3
    assert math.exp(total / score.tokens) == pytest.approx(score.perplexity, rel=0.005)


def scores(run: Run) -> tuple[list[float], list[int], list[list[tuple[int, float]]]]:
    return run.prompt_logprobs, run.prompt_ranks, run.prompt_top


@pytest.mark.parametrize("tiny", TINY_MODELS[:2], ids=lambda tiny: tiny.name)
def test_they_are_log_softmax_of_the_reference(tiny: TinyModel, tmp_path: Path) -> None:
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


def test_prompt_logprobs_have_the_same_bits_in_any_chunking_and_batch(demo_model: Path) -> None:
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
