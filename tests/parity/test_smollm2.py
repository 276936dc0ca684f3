"""The demo model against transformers in fp32 on the file's own weights, dequantised."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from transformers import LlamaForCausalLM

from engine.models.loader import OpenModel, open_model
from tests.parity.loading import load_stepper
from tests.parity.reference import answer_logits, llama_from_gguf, logits
from tests.parity.stepper import Run, Stepper

DATA = Path(__file__).parent / "data" / "alice.txt"
CHUNK = 250
"""Tokens of prose scored at a time."""

QUESTIONS = [
    "What is the capital of France?",
    "Explain what a prime number is.",
    "Write a haiku about the sea.",
    "How do I boil an egg?",
    "Who wrote Hamlet?",
    "List three uses of copper.",
    "What is photosynthesis?",
    "Why is the sky blue?",
    "Translate 'good morning' into Spanish.",
    "What is 12 times 8?",
    "Tell me a short story about a fox.",
    "What does a compiler do?",
    "Name the planets of the solar system.",
    "How does a bicycle stay upright?",
    "What is the largest ocean?",
    "Give me advice for a job interview.",
    "What is the difference between a frog and a toad?",
    "How are rainbows formed?",
    "What is a haiku?",
    "Describe the taste of a lemon.",
]


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


def log_softmax(values: NDArray[np.float32]) -> NDArray[np.float32]:
    return torch.log_softmax(torch.from_numpy(values), -1).numpy()


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
    ids = opened.tokenizer.encode(DATA.read_text())
    parts = [ids[start : start + CHUNK + 1] for start in range(0, len(ids) - 1, CHUNK)]
    runs = [
        Run(part[:1], len(part) - 1, forced=part[1:], sampling={"num_logprobs": 20})
        for part in parts
    ]
    quantized.run(runs)
    divergences: list[float] = []
    changed: list[bool] = []
    losses: list[tuple[float, float]] = []
    for part, run in zip(parts, runs, strict=True):
        assert run.tokens == part[1:]
        exact = log_softmax(logits(reference, part[:-1]))
        divergences += [
            divergence(top, predicted) for top, predicted in zip(run.top, exact, strict=True)
        ]
        changed += [top[0][0] != best for top, best in zip(run.top, exact.argmax(-1), strict=True)]
        expected = exact[np.arange(len(part) - 1), part[1:]]
        losses += zip(run.logprobs, expected.tolist(), strict=True)
    kl = float(np.mean(divergences))
    ours, theirs = -np.mean(losses, axis=0)
    print(
        f"{len(losses)} tokens: KL {kl:.5f}, perplexity × {np.exp(ours - theirs):.4f}, "
        f"another likeliest token {np.mean(changed):.1%}"
    )
    assert len(losses) > 2500
    assert kl <= most
    assert np.exp(ours - theirs) <= 1.005


def divergence(top: list[tuple[int, float]], exact: NDArray[np.float32]) -> float:
    """KL divergence of our likeliest tokens' distribution, the rest being one token, from fp32's."""
    ids, logprobs = zip(*top, strict=True)
    p, q = np.exp(exact[list(ids)], dtype=np.float64), np.exp(np.array(logprobs, np.float64))
    p, q = np.append(p, max(1 - p.sum(), 1e-9)), np.append(q, max(1 - q.sum(), 1e-9))
    return float((p * np.log(p / q)).sum())


def test_quantised_answers_leave_only_at_near_ties(
    reference: LlamaForCausalLM, quantized: Stepper, prompts: list[list[int]]
) -> None:
    """Where an answer of 48 tokens first departs, fp32's two best are at most 0.4 logits apart."""
    runs = [Run(prompt, 48) for prompt in prompts]
    quantized.run(runs)
    margins = []
    for run in runs:
        exact = answer_logits(reference, run.prompt, run.tokens)
        departed = np.flatnonzero(exact.argmax(-1) != run.tokens)
        if departed.size:
            best = np.sort(exact[departed[0]])[-2:]
            margins.append(float(best[1] - best[0]))
    print(f"{len(runs) - len(margins)} of {len(runs)} equal; margins {np.round(margins, 3)}")
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
