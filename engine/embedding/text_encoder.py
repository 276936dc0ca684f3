"""`TextEncoder`: a BERT encoder and its WordPiece tokenizer, loaded from a model directory."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import tokenizers

from engine import _core
from engine.api.config import DispatchLevel, EmbeddingPrecision
from engine.api.embeddings import Embeddings
from engine.api.errors import ContextLengthExceeded, InvalidRequest, ModelError, exceeding

TRAINED_TOKENS = 256
"""Sequence length all-MiniLM-L6-v2 was trained for. Its position table is longer, but quality drops."""


class TextEncoder:
    """Embeds texts on the caller's thread and the native core's threads; the GIL is released.

    Attributes:
        name: name of the model.
        dimensions: length of a vector.
        max_tokens: maximum number of tokens in a text, special tokens included.
    """

    def __init__(
        self,
        directory: Path,
        *,
        name: str,
        precision: EmbeddingPrecision = "f32",
        threads: int | None = None,
        dispatch: DispatchLevel = "auto",
    ) -> None:
        """Load an encoder.

        Args:
            directory: contains config.json, tokenizer.json and model.safetensors.
            name: name of the model.
            precision: of the matrix products. int8 is several times as fast; docs/embeddings.md says
                what it loses. Vectors of both may be compared with each other.
            threads: compute threads; None for the default.
            dispatch: instruction-set level.

        Raises:
            ModelError: a file is missing, damaged or unsupported.
        """
        try:
            self._core = _core.BertEncoder(
                (directory / "config.json").read_text(),
                directory / "model.safetensors",
                precision=precision,
                threads=threads,
                dispatch=dispatch,
            )
        except OSError as error:
            raise ModelError(f"The encoder {directory} cannot be read: {error}.") from error
        except (ValueError, MemoryError, RuntimeError) as error:
            raise ModelError(f"The encoder {directory} cannot be used: {error}") from error
        self._tokenizer = load_tokenizer(directory)
        self.name = name
        self.dimensions = self._core.dimensions
        self.max_tokens = min(TRAINED_TOKENS, self._core.max_positions)

    def embed(
        self, texts: Sequence[str], *, truncate: int | None = None, dimensions: int | None = None
    ) -> Embeddings:
        """Embed texts. A vector depends on its text only, bit for bit, not on the batch.

        Args:
            texts: non-empty texts.
            truncate: truncate longer texts to this many tokens, special tokens included, from 3 to
                `max_tokens`; None rejects texts longer than `max_tokens`.
            dimensions: the expected length of the vectors; None accepts the model's.

        Raises:
            InvalidRequest: a text is empty, too long or not valid Unicode, or `truncate` or
                `dimensions` is out of range.
        """
        if dimensions is not None and dimensions != self.dimensions:
            raise InvalidRequest(
                f"dimensions is {dimensions}; vectors of {self.name} have {self.dimensions} and "
                "cannot be shortened.",
                param="dimensions",
            )
        encodings = self._encode(texts, self._limit(truncate))
        starts = np.zeros(len(encodings) + 1, np.int64)
        np.cumsum([len(one) for one in encodings], out=starts[1:])
        ids = np.fromiter((token for one in encodings for token in one), np.int32, int(starts[-1]))
        return Embeddings(self.name, self._core.encode(ids, starts), len(ids))

    def _limit(self, truncate: int | None) -> int | None:
        if truncate is not None and not 3 <= truncate <= self.max_tokens:
            raise InvalidRequest(
                f"truncate_prompt_tokens is {truncate}; it must be between 3 and {self.max_tokens}.",
                param="truncate_prompt_tokens",
            )
        return truncate

    def _encode(self, texts: Sequence[str], truncate: int | None) -> list[list[int]]:
        for index, text in enumerate(texts):
            if not text:
                raise InvalidRequest(f"Text {index} is empty.", param="input")
        try:
            # The batch call releases the GIL.
            encodings = [one.ids for one in self._tokenizer.encode_batch_fast(list(texts))]
        except TypeError as error:
            raise InvalidRequest("A text is not valid Unicode.", param="input") from error
        for index, ids in enumerate(encodings):
            if truncate is not None and len(ids) > truncate:
                ids[truncate - 1 : -1] = []  # keeps the last token, [SEP]
            elif len(ids) > self.max_tokens:
                raise ContextLengthExceeded(
                    f"{exceeding(len(ids), self.max_tokens)}, in text {index}",
                    self.max_tokens,
                    param="input",
                    includes_answer=False,
                    advice=", or set truncate_prompt_tokens",
                )
        return encodings


def load_tokenizer(directory: Path) -> tokenizers.Tokenizer:
    """The tokenizer of an encoder, without padding and truncation.

    Raises:
        ModelError: it is missing or damaged.
    """
    try:
        tokenizer = tokenizers.Tokenizer.from_file(str(directory / "tokenizer.json"))
    except Exception as error:  # `tokenizers` raises a bare Exception for a damaged file
        raise ModelError(f"The tokenizer of {directory} cannot be used: {error}.") from error
    # The file enables padding and truncation at 128 tokens, which would cut long texts silently.
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer
