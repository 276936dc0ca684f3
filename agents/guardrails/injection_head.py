"""`InjectionHead`: a logistic regression on MiniLM embeddings that scores a text as prompt injection.

385 numbers (384 weights and a bias) and a threshold, trained by `scripts/train_injection_head.py` from the
prompts in `data/`. It sees meaning, not keywords, and it errs: its figures are in `docs/guardrails.md`, and
its detections flag, they do not block.
"""

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from agents.guardrails.detection import Detection, Kind
from agents.text.text_embedder import TextEmbedder
from engine.api.errors import ModelError

HEAD_FILE = Path(__file__).with_name("injection_head.safetensors")
WINDOW_CHARS = 400
"""Length of the longest piece that is scored by itself: a long text would average an instruction away."""
MAX_TOKENS = 128
BATCH = 64


@dataclass(frozen=True, slots=True)
class InjectionHead:
    """The parameters.

    Attributes:
        weight: [dimensions] float32.
        bias: added to the dot product with an embedding.
        threshold: probability from which a text counts as an injection.
    """

    weight: NDArray[np.float32]
    bias: float
    threshold: float

    def probabilities(self, vectors: NDArray[np.float32]) -> NDArray[np.float64]:
        """Probability of injection for each row of `vectors` [texts, dimensions]."""
        logits = vectors.astype(np.float64) @ self.weight.astype(np.float64) + self.bias
        return 0.5 * (1 + np.tanh(logits / 2))  # the logistic function, without overflow


def load_head(path: Path = HEAD_FILE) -> InjectionHead:
    """Read a head from a safetensors file of F32 tensors `weight`, `bias` and `threshold`.

    Raises:
        ModelError: the file is missing or damaged.
    """
    try:
        data = path.read_bytes()
        length = int.from_bytes(data[:8], "little")
        header = json.loads(data[8 : 8 + length])
        tensors = {
            name: np.frombuffer(data[8 + length :][slice(*header[name]["data_offsets"])], "<f4")
            for name in ("weight", "bias", "threshold")
        }
        return InjectionHead(
            tensors["weight"].astype(np.float32),
            float(tensors["bias"].item()),
            float(tensors["threshold"].item()),
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ModelError(f"The injection head {path} cannot be used: {error}.") from error


def windows(text: str) -> Iterator[tuple[int, int]]:
    """Half-open spans of at most `WINDOW_CHARS` characters covering the text, cut at lines or sentences."""
    start = 0
    while start < len(text):
        end = min(len(text), start + WINDOW_CHARS)
        if end < len(text):
            for separator in ("\n", ". ", "? ", "! ", " "):
                cut = text.rfind(separator, start + WINDOW_CHARS // 2, end)
                if cut >= 0:
                    end = cut + len(separator)
                    break
        if not text[start:end].isspace():
            yield start, end
        start = end


class InjectionClassifier:
    """Tier 2: detects windows of a text that the head scores at or above its threshold."""

    kinds = frozenset({Kind.INJECTION})

    def __init__(self, embedder: TextEmbedder, head: InjectionHead | None = None) -> None:
        """Classify with an embedder.

        Args:
            embedder: MiniLM, which the head was trained for.
            head: the parameters; None reads those that are shipped.

        Raises:
            ModelError: the head's file is damaged.
        """
        self._embedder = embedder
        self._head = load_head() if head is None else head

    async def detect(self, text: str) -> list[Detection]:
        """Windows that look like an injection.

        Raises:
            ModelError: the embedding model is not installed.
        """
        # The embedder refuses lone surrogates, which JSON strings can carry.
        text = text.encode("utf-8", "replace").decode()
        spans = list(windows(text))
        found: list[Detection] = []
        for first in range(0, len(spans), BATCH):
            batch = spans[first : first + BATCH]
            work = self._embedder.submit(
                [text[start:end] for start, end in batch], truncate=MAX_TOKENS
            )
            embeddings = await asyncio.wrap_future(work)
            scores = self._head.probabilities(embeddings.vectors)
            found += [
                Detection(Kind.INJECTION, "injection_head", *span, text[slice(*span)], float(score))
                for span, score in zip(batch, scores, strict=True)
                if score >= self._head.threshold
            ]
        return found
