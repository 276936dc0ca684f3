"""An embedder without a model: a vector counts the words of its text, hashed into 64 buckets."""

import re
import zlib
from collections.abc import Sequence
from concurrent.futures import Future

import numpy as np
from tokenizers import Tokenizer, models, pre_tokenizers

from engine.api.embeddings import Embeddings

DIMENSIONS = 64


class WordEmbedder:
    """Embeds at once, on the caller's thread.

    Attributes:
        texts: all texts that were embedded, in order.
    """

    def __init__(self, name: str = "words") -> None:
        self.name = name
        self.texts: list[str] = []

    def submit(self, texts: Sequence[str], *, truncate: int | None = None) -> "Future[Embeddings]":
        self.texts += texts
        future: Future[Embeddings] = Future()
        future.set_result(Embeddings(self.name, np.stack([embed(one) for one in texts]), 0))
        return future

    def tokenizer(self) -> Tokenizer:
        tokenizer = Tokenizer(models.WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
        tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        return tokenizer


def embed(text: str) -> "np.ndarray[tuple[int], np.dtype[np.float32]]":
    vector = np.zeros(DIMENSIONS, np.float32)
    vector[0] = 0.1  # texts without a word have a direction, too
    for word in re.findall(r"\w+", text.lower()):
        vector[zlib.crc32(word.encode()) % DIMENSIONS] += 1
    return vector / np.linalg.norm(vector)
