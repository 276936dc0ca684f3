"""The demo model against transformers in fp32 on the file's own weights, dequantised."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from transformers import LlamaForCausalLM

from engine.executors.open_model import OpenModel, open_model
from tests.parity.accuracy import PROSE, QUESTIONS, departures, score_prose
from tests.parity.loading import load_stepper
from tests.parity.reference import answer_logits, llama_from_gguf
from tests.parity.stepper import Run, Stepper


@pytest.fixture(scope="module")
def opened(demo_model: Path) -> OpenModel:
    return open_model(demo_model)


@pytest.fixture(scope="module")
def reference(demo_model: Path) -> LlamaForCausalLM:
    return llama_from_gguf(demo_model)


@pytest.fixture(scope="module")
def quantized(demo_model: Path) -> Iterator[Stepper]:
    stepper = load_stepper(
        demo_model, kv_dtype="f16", rows=len(QUESTIONS), max_model_len=512, num_blocks=320
    )
    yield stepper
    stepper.executor.close()


@pytest.fixture(scope="module")
def prompts(opened: OpenModel) -> list[list[int]]:
    def prompt(question: str) -> list[int]:
        text = opened.tokenizer.render_chat([{"role": "user", "content": question}])
        return opened.tokenizer.encode(text, special=True)

    return [prompt(question) for question in QUESTIONS]


@pytest.fixture(scope="module", params=["f16", "int8"])
def stepper_by_kv(
    request: pytest.FixtureRequest, demo_model: Path, quantized: Stepper
) -> Iterator[tuple[Stepper, float]]:
    """A stepper with each type of KV cache, and the divergence it may have."""
    if request.param == "f16":
        yield quantized, 0.002
        return
    stepper = load_stepper(
        demo_model,
        kv_dtype=request.param,
        rows=len(QUESTIONS),
        max_model_len=512,
        num_blocks=320,
    )
    yield stepper, 0.005
    stepper.executor.close()


def test_quantised_prose_diverges_little(
    opened: OpenModel, reference: LlamaForCausalLM, stepper_by_kv: tuple[Stepper, float]
) -> None:
    """Perplexity within 0.5 % and mean KL divergence far below 0.01 on prose.

    The executor reports logprobs of the 20 likeliest tokens; all others count as one here. That can
    only lower the divergence, so half of what is allowed is the most.
    """
    quantized, most = stepper_by_kv
    score = score_prose(quantized, reference, opened.tokenizer.encode(PROSE.read_text()))
    print(score)
    assert score.tokens > 2500
    assert score.mean_kl <= most
    assert score.perplexity_ratio <= 1.005


def test_quantised_answers_leave_only_at_near_ties(
    reference: LlamaForCausalLM, quantized: Stepper, prompts: list[list[int]]
) -> None:
    """Where an answer of 48 tokens first departs, fp32's two best are at most 0.4 logits apart."""
    margins = departures(quantized, reference, prompts)
    print(f"{len(prompts) - len(margins)} of {len(prompts)} equal; margins {np.round(margins, 3)}")
    assert max(margins, default=0.0) <= 0.4


def test_unquantised_answers_are_the_same_tokens(
    reference: LlamaForCausalLM,
    prompts: list[list[int]],
    tmp_path: Path,
) -> None:
    reference.save_pretrained(tmp_path)
    exact = load_stepper(tmp_path)
    runs = [Run(prompt, 64) for prompt in prompts[:10]]
    exact.run(runs)
    exact.executor.close()
    for run in runs:
        expected = answer_logits(reference, run.prompt, run.tokens).argmax(-1).tolist()
        assert run.tokens == expected
