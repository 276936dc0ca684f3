"""An embedder without a model, which can be held up: texts are near each other if they share words."""

import re
import threading
import zlib
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
import tokenizers
from tokenizers import models, pre_tokenizers

from engine.api.embeddings import Embeddings
from engine.api.errors import InvalidRequest, ModelNotFound

DIMENSIONS = 256
MAX_TOKENS = 256


class GatedEmbedder:
    """Counts of hashed words, normalised.

    Attributes:
        installed: whether it works at all.
        gate: texts with the word zzgate are embedded while it is set.
        second_gate: the same for zzlast.
        waiting: set once a text waits for a gate.
        calls: texts of each call.
    """

    name = "minilm"
    loaded = True

    def __init__(self, *, installed=True):
        self.installed = installed
        self.gate, self.second_gate = threading.Event(), threading.Event()
        self.gate.set()
        self.second_gate.set()
        self.waiting = threading.Event()
        self.calls = []
        self._pool = ThreadPoolExecutor(4)

    def tokenizer(self):
        tokenizer = tokenizers.Tokenizer(models.WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
        tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        return tokenizer

    def submit(self, texts, *, truncate=None, dimensions=None):
        if not self.installed:
            failed = Future()
            failed.set_exception(
                ModelNotFound(
                    "The embedding model is not installed: run `pravaha models add minilm`."
                )
            )
            return failed
        return self._pool.submit(self._embed, list(texts), truncate)

    def close(self):
        self.gate.set()
        self.second_gate.set()
        self._pool.shutdown()

    def _embed(self, texts, truncate):
        self.calls.append(texts)
        for word, gate in (("zzgate", self.gate), ("zzlast", self.second_gate)):
            if any(word in text for text in texts):
                self.waiting.set()
                assert gate.wait(30)
        vectors = np.zeros((len(texts), DIMENSIONS), np.float32)
        tokens = 0
        for row, text in enumerate(texts):
            words = re.findall(r"\w+", text.lower())
            if truncate is not None:
                words = words[:truncate]
            if len(words) > MAX_TOKENS:
                raise InvalidRequest(f"Text {row} has {len(words)} tokens.", param="input")
            tokens += len(words)
            for word in words or ["[empty]"]:
                vectors[row, zlib.crc32(word.encode()) % DIMENSIONS] += 1
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        return Embeddings(self.name, vectors, tokens)
