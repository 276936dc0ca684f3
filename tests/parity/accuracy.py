"""Accuracy of the executor against fp32 on the same weights: prose and greedy answers."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import PreTrainedModel

from tests.parity.reference import batched_logits
from tests.parity.stepper import Run, Stepper

PROSE = Path(__file__).parent / "data" / "alice.txt"
CHUNK = 250
"""Tokens of prose scored at a time, unless told otherwise."""
ANSWER_TOKENS = 48

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


@dataclass(frozen=True, slots=True)
class ProseScore:
    """Accuracy of the predicted tokens of a text.

    Attributes:
        tokens: number of predicted tokens.
        perplexity: the executor's.
        perplexity_ratio: the executor's over fp32's.
        mean_kl: KL divergence from fp32, in nats; a lower bound, see `divergence`.
        top1_changed: share of positions whose likeliest token differs from fp32's, 0–1.
    """

    tokens: int
    perplexity: float
    perplexity_ratio: float
    mean_kl: float
    top1_changed: float


def score_prose(
    steppers: Sequence[Stepper],
    reference: PreTrainedModel,
    ids: Sequence[int],
    *,
    prefix: Sequence[int] = (),
    length: int = CHUNK,
    first: int = 1,
) -> list[ProseScore]:
    """Each stepper's score of the text with ids `ids`, in parts of `length` that begin without context.

    Steppers score the text as a prompt: its logprobs have the same bits as those of sampled tokens.

    Args:
        steppers: executors of the same weights.
        reference: transformers' model of these weights.
        ids: the text.
        prefix: what each part begins with, as a prompt does: BOS, where a model expects it.
        length: most tokens of context.
        first: the first predicted token of a part, from 1, and thus the least number of tokens of context.
    """
    starts = range(0, len(ids) - first, length)
    parts = [[*prefix, *ids[start : start + length + 1]] for start in starts]
    first += len(prefix)
    runs = [[Run(part, 1, score=20) for part in parts] for _ in steppers]
    for stepper, own in zip(steppers, runs, strict=True):
        stepper.run(own)
    divergences: list[list[float]] = [[] for _ in steppers]
    changed: list[list[bool]] = [[] for _ in steppers]
    losses: list[list[tuple[float, float]]] = [[] for _ in steppers]
    references = batched_logits(reference, [part[:-1] for part in parts])
    for number, (part, reference_logits) in enumerate(zip(parts, references, strict=True)):
        exact = _log_softmax(reference_logits[first - 1 :])
        expected = exact[np.arange(len(part) - first), part[first:]].tolist()
        likeliest = exact.argmax(-1)
        for at, own in enumerate(runs):
            tops, logprobs = own[number].prompt_top[first - 1 :], own[number].prompt_logprobs
            divergences[at] += [divergence(top, row) for top, row in zip(tops, exact, strict=True)]
            changed[at] += [top[0][0] != best for top, best in zip(tops, likeliest, strict=True)]
            losses[at] += zip(logprobs[first - 1 :], expected, strict=True)
    scores = []
    for at in range(len(steppers)):
        ours, theirs = -np.mean(losses[at], axis=0)
        scores.append(
            ProseScore(
                tokens=len(losses[at]),
                perplexity=float(np.exp(ours)),
                perplexity_ratio=float(np.exp(ours - theirs)),
                mean_kl=float(np.mean(divergences[at])),
                top1_changed=float(np.mean(changed[at])),
            )
        )
    return scores


def divergence(top: list[tuple[int, float]], exact: NDArray[np.float32]) -> float:
    """KL divergence of the executor's likeliest tokens from fp32, with all other tokens pooled.

    The executor reports logprobs of 20 tokens; pooling the others can only lower the divergence.
    """
    ids, logprobs = zip(*top, strict=True)
    p, q = np.exp(exact[list(ids)], dtype=np.float64), np.exp(np.array(logprobs, np.float64))
    p, q = np.append(p, max(1 - p.sum(), 1e-9)), np.append(q, max(1 - q.sum(), 1e-9))
    return float((p * np.log(p / q)).sum())


def margins(exact: NDArray[np.float32], tokens: Sequence[int]) -> NDArray[np.float32]:
    """[tokens] float32: how much larger fp32's best logit is than that of the sampled token; 0 if equal.

    `exact`: [tokens, vocab], fp32's logits before each token.
    """
    chosen: NDArray[np.float32] = exact[np.arange(len(tokens)), tokens]
    return exact.max(-1) - chosen


def departures(
    stepper: Stepper, reference: PreTrainedModel, prompts: Sequence[Sequence[int]]
) -> list[float]:
    """Difference of fp32's two largest logits where a greedy answer first departs from fp32's.

    One margin for each answer of `ANSWER_TOKENS` that is not equal.
    """
    runs = [Run(prompt, ANSWER_TOKENS) for prompt in prompts]
    stepper.run(runs)
    texts = [[*run.prompt, *run.tokens[:-1]] for run in runs]
    margins = []
    for run, rows in zip(runs, batched_logits(reference, texts), strict=True):
        exact = rows[len(run.prompt) - 1 :]
        departed = np.flatnonzero(exact.argmax(-1) != run.tokens)
        if departed.size:
            best = np.sort(exact[departed[0]])[-2:]
            margins.append(float(best[1] - best[0]))
    return margins


def _log_softmax(values: NDArray[np.float32]) -> NDArray[np.float32]:
    return torch.log_softmax(torch.from_numpy(values), -1).numpy()
