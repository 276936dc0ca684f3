"""Trains the prompt-injection head on MiniLM embeddings and writes `injection_head.safetensors`.

    python scripts/train_injection_head.py

Data: the prompts of `agents/guardrails/data/`, and windows of ordinary text (the standard library of this
Python and this repository's pages and sources). One group of five is held out of training by a hash of its
phrase; `benchmarks/guardrails.py` measures on those. The threshold comes from the training set, by
cross-validation. The encoder `minilm` must be installed.
"""

import hashlib
import json
import random
import sysconfig
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from agents.guardrails.injection_head import HEAD_FILE, MAX_TOKENS, windows
from engine.embedding.embedder import installed_encoder
from engine.embedding.text_encoder import TextEncoder

ROOT = Path(__file__).parent.parent
DATA = ROOT / "agents" / "guardrails" / "data"
ORDINARY_WINDOWS = 4000
"""Number of windows of ordinary text, for training and for the benchmark each."""
L2 = 1e-4
ADVERSARIAL = frozenset({"hard", "carried"})
"""Families of harmless texts that speak of rules, prompts and secrets; they do not move the threshold."""
ORDINARY_SHARE, PROMPT_SHARE = 0.005, 0.01
"""Shares of ordinary windows and of everyday prompts that may reach the threshold."""


@dataclass(frozen=True, slots=True)
class Sample:
    """A text; `group` names the phrase it was made from, so that one phrase is never on both sides."""

    text: str
    injection: bool
    family: str
    group: str

    @property
    def held_out(self) -> bool:
        """Whether it belongs to the benchmark."""
        return hashlib.blake2b(self.group.encode(), digest_size=2).digest()[0] % 5 == 0


def prompts() -> list[Sample]:
    """The written prompts."""
    samples = []
    for name, injection in (("attacks", True), ("benign", False)):
        for line in (DATA / f"{name}.jsonl").read_text(encoding="utf-8").splitlines():
            entry = json.loads(line)
            group = entry.get("group", entry["text"])
            samples.append(Sample(entry["text"], injection, entry["family"], group))
    return samples


def ordinary_text(*, held_out: bool) -> list[Sample]:
    """Windows of files that nobody wrote for this purpose; the hash of a file's name decides its side."""
    library = Path(sysconfig.get_paths()["stdlib"])
    files = [path for path in library.glob("**/*.py") if "site-packages" not in path.parts]
    for pattern in (
        "*.md",
        "docs/**/*.md",
        "engine/**/*.py",
        "app/**/*.py",
        "rust_core/**/*.rs",
        "LICENSE",
    ):
        files += ROOT.glob(pattern)
    samples = []
    for path in sorted(files):
        text = path.read_text(encoding="utf-8", errors="replace")
        texts = [text[start:end] for start, end in windows(text)]
        samples += [Sample(one, False, "ordinary", f"file {path.name}") for one in texts]
    side = [sample for sample in samples if sample.held_out == held_out]
    return random.Random(1).sample(side, min(len(side), ORDINARY_WINDOWS))  # noqa: S311


def embed(samples: list[Sample]) -> NDArray[np.float64]:
    """Embeddings, [samples, 384]."""
    encoder = TextEncoder(installed_encoder(), name="minilm")
    parts = [
        encoder.embed(
            [one.text for one in samples[first : first + 64]], truncate=MAX_TOKENS
        ).vectors
        for first in range(0, len(samples), 64)
    ]
    return np.concatenate(parts).astype(np.float64)


def class_balance(samples: list[Sample]) -> NDArray[np.float64]:
    """Weights of the samples, [samples]: attacks one half, written and ordinary negatives a quarter each."""
    kinds = ["attack" if one.injection else one.family == "ordinary" for one in samples]
    shares = {"attack": 0.5, True: 0.25, False: 0.25}
    return np.array([shares[kind] / kinds.count(kind) for kind in kinds])


def fit(
    vectors: NDArray[np.float64], labels: NDArray[np.bool_], balance: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Weights and bias, [385], of an L2-regularised logistic regression by Newton's method."""
    inputs = np.concatenate([vectors, np.ones((len(vectors), 1))], axis=1)
    penalty = np.full(inputs.shape[1], L2)
    penalty[-1] = 0
    weights = np.zeros(inputs.shape[1])
    for _ in range(30):
        probability = 1 / (1 + np.exp(-inputs @ weights))
        gradient = inputs.T @ (balance * (probability - labels)) + penalty * weights
        curvature = balance * probability * (1 - probability)
        hessian = (inputs * curvature[:, None]).T @ inputs + np.diag(penalty + 1e-9)
        step = np.linalg.solve(hessian, gradient)
        weights -= step
        if np.abs(step).max() < 1e-8:
            break
    return weights


def scores(vectors: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Probabilities."""
    return 1 / (1 + np.exp(-(vectors @ weights[:-1] + weights[-1])))


def cross_validated(
    samples: list[Sample], vectors: NDArray[np.float64], labels: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """The score of each sample by a head that has not seen its group, in five folds."""
    digests = (hashlib.blake2b(sample.group.encode(), digest_size=2) for sample in samples)
    folds = np.array([digest.digest()[1] % 5 for digest in digests])
    balance = class_balance(samples)
    result = np.zeros(len(samples))
    for fold in range(5):
        rest = folds != fold
        weights = fit(vectors[rest], labels[rest], balance[rest])
        result[folds == fold] = scores(vectors[folds == fold], weights)
    return result


def main() -> None:
    """Train and write the head."""
    from safetensors.numpy import save_file

    samples = [one for one in prompts() if not one.held_out] + ordinary_text(held_out=False)
    vectors = embed(samples)
    labels = np.array([one.injection for one in samples])
    validated = cross_validated(samples, vectors, labels)
    families = np.array([one.family for one in samples])
    ordinary = families == "ordinary"
    everyday = ~labels & ~ordinary & ~np.isin(families, list(ADVERSARIAL))
    threshold = max(
        float(np.quantile(validated[ordinary], 1 - ORDINARY_SHARE)),
        float(np.quantile(validated[everyday], 1 - PROMPT_SHARE)),
    )
    weights = fit(vectors, labels, class_balance(samples))
    tensors = {
        "weight": weights[:-1].astype(np.float32),
        "bias": weights[-1:].astype(np.float32),
        "threshold": np.array([threshold], np.float32),
    }
    save_file(tensors, HEAD_FILE, metadata={"encoder": "all-MiniLM-L6-v2"})
    print(
        f"{labels.sum()} attacks, {(~labels).sum()} others; threshold {threshold:.3f}; by cross-validation:"
    )
    for name, chosen in (("attacks", labels), ("ordinary", ordinary), ("everyday", everyday)):
        print(f"  {name}: {(validated[chosen] >= threshold).mean():.1%} at or above it")


if __name__ == "__main__":
    main()
