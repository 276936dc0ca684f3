"""Batches for runtimes without tokenizer and pooling: sorted by length, padded to the longest."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from calls import BATCH, MOST_TOKENS
from numpy.typing import NDArray
from tokenizers import Tokenizer


class PaddedBatches:
    """The tokenizer of the sentence-transformers folder."""

    def __init__(self, folder: Path) -> None:
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.enable_truncation(MOST_TOKENS)
        self._tokenizer.no_padding()

    def of(self, texts: Sequence[str]) -> Iterator[tuple[list[int], dict[str, NDArray[np.int64]]]]:
        """Positions of the texts, and the inputs of the model."""
        ids = [one.ids for one in self._tokenizer.encode_batch_fast(list(texts))]
        order = sorted(range(len(ids)), key=lambda at: len(ids[at]))
        for first in range(0, len(order), BATCH):
            mine = order[first : first + BATCH]
            width = max(len(ids[at]) for at in mine)
            tokens = np.zeros((len(mine), width), np.int64)
            mask = np.zeros_like(tokens)
            for row, at in enumerate(mine):
                tokens[row, : len(ids[at])] = ids[at]
                mask[row, : len(ids[at])] = 1
            yield (
                mine,
                {
                    "input_ids": tokens,
                    "attention_mask": mask,
                    "token_type_ids": np.zeros_like(tokens),
                },
            )


def pooled(states: NDArray[np.float32], mask: NDArray[np.int64]) -> NDArray[np.float32]:
    """Means over the tokens, of length 1."""
    weights = mask[:, :, None].astype(np.float32)
    means = (states * weights).sum(1)
    return means / np.linalg.norm(means, axis=1, keepdims=True)
