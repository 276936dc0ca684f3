"""Quantised models of every architecture with their default KV type, against transformers in fp32.

The KV type is int8, and f16 for Qwen2, whose keys have a bias (`engine.executors.native_settings`).
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from tests.parity.accuracy import divergence, margins
from tests.parity.loading import load_stepper
from tests.parity.quantised_models import ARCHITECTURES, Architecture, write_model
from tests.parity.reference import answer_logits, model_from_gguf
from tests.parity.stepper import Run, Stepper

PROMPT_LENGTHS = [1, 15, 33, 64, 100, 150]
NEW_TOKENS = 64


@dataclass(frozen=True)
class Answers:
    """Greedy answers of one model.

    Attributes:
        stepper: the model.
        runs: the answers, computed in one batch.
        exact: [NEW_TOKENS, vocab] float32 for each: fp32's logits before each token of the answer.
    """

    stepper: Stepper
    runs: list[Run]
    exact: list[NDArray[np.float32]]


@pytest.fixture(scope="module", params=ARCHITECTURES, ids=lambda architecture: architecture.name)
def architecture(request: pytest.FixtureRequest) -> Architecture:
    return request.param


@pytest.fixture(scope="module")
def answers(
    architecture: Architecture, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Answers]:
    path = write_model(tmp_path_factory.mktemp("tiny") / "tiny.gguf", "Q4_1", architecture)
    stepper = load_stepper(path, kv_dtype="auto", max_tokens=96)  # prompts are computed in chunks
    assert stepper.executor.info.kv_dtype == ("f16" if architecture.biased else "int8")
    rng = np.random.default_rng(1)
    runs = [
        Run(rng.integers(3, 250, length).tolist(), NEW_TOKENS, sampling={"num_logprobs": 20})
        for length in PROMPT_LENGTHS
    ]
    stepper.run(runs)
    reference = model_from_gguf(path)
    yield Answers(stepper, runs, [answer_logits(reference, run.prompt, run.tokens) for run in runs])
    stepper.executor.close()


def test_answers_depart_only_at_near_ties(answers: Answers) -> None:
    """Where a token is not fp32's best, fp32's logits of the two are nearly equal.

    The median difference between fp32's two best logits is 0.3 to 0.5; a sliding window that is one
    token too long gives margins of 1.4.
    """
    pairs = zip(answers.runs, answers.exact, strict=True)
    found = np.concatenate([margins(exact, run.tokens) for run, exact in pairs])
    print(f"{np.mean(found > 0):.1%} of tokens are not fp32's, largest margin {found.max():.3f}")
    assert found.max() <= 0.2


def test_logprobs_diverge_little(answers: Answers) -> None:
    divergences = []
    for run, rows in zip(answers.runs, answers.exact, strict=True):
        exact = torch.log_softmax(torch.from_numpy(rows), -1).numpy()
        divergences += [divergence(top, row) for top, row in zip(run.top, exact, strict=True)]
    print(f"mean KL {np.mean(divergences):.5f}, largest {max(divergences):.5f}")
    assert np.mean(divergences) <= 0.0005


@pytest.mark.parametrize("chunks", [[1], [7, 32, 3], None], ids=str)
def test_an_answer_alone_in_chunks_has_the_bits_of_the_batch(
    answers: Answers, chunks: list[int] | None
) -> None:
    for together in answers.runs[1::2]:
        alone = Run(together.prompt, NEW_TOKENS, chunks=chunks, sampling=together.sampling)
        answers.stepper.run([alone])
        assert (alone.tokens, alone.logprobs, alone.top) == (
            together.tokens,
            together.logprobs,
            together.top,
        )
