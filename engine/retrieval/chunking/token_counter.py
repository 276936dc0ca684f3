"""`TokenCounter`: how many tokens each piece of a text has, without tokenizing the text as a whole.

A BERT tokenizer splits at white space and around punctuation before it looks at its vocabulary, so the tokens
of a text are those of its words, one after another. Words repeat: the tokenizer itself counts each once, and
the count is kept. Counting is then one look-up a word.

Other tokenizers look across words. Their counts are estimates here, and `split` checks its chunks
(`exact` is False).
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import tokenizers
from numpy.typing import NDArray

_MAX_KEPT_CHARACTERS = 1 << 24
"""Length of all words together whose counts are kept; some 200 MB with Python's overhead."""
_BLOCK = 1 << 20
"""Characters that are cut into pieces at once, which bounds the memory for their strings."""
_BATCH = 4_096

# Only these four characters separate words in every BERT normalizer: it removes other control characters,
# form feed among them, and joins what stood around them.
SPACES = " \t\r\n"
# Punctuation and ideographs stand alone. Listed are ASCII's, and of category P those that end sentences.
_ALONE = (
    r"!-/:-@\[-`{-~\u0964\u0965\u2010-\u2027\u3001-\u3003\u3008-\u3011\u3014-\u301f"
    r"\uff01-\uff03\uff05-\uff0a\uff0c-\uff0f\uff1a\uff1b\uff1f\uff20\uff3b-\uff3d\uff5b\uff5d\uff5f-\uff65"
    r"\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U0002a6df"
)
_WORDS = rf"[^ \t\r\n{_ALONE}]+|[{_ALONE}]|[ \t\r\n]+"
_SPACED_WORDS = r"[^ \t\r\n]+|[ \t\r\n]+"


@dataclass(frozen=True, slots=True)
class CountedPieces:
    """A text in pieces.

    Attributes:
        starts: int32[pieces + 1], character offset of each piece; the last is the text's length.
        before: int32[pieces + 1], number of tokens before each piece; the last is the text's.
        forced: indices of pieces that begin inside a word, where counts do not add up: a chunk ends there.
    """

    starts: NDArray[np.int32]
    before: NDArray[np.int32]
    forced: Sequence[int]


class TokenCounter:
    """Counts tokens with one tokenizer. Thread-safe.

    Attributes:
        exact: whether the sum over pieces is the number of tokens of the text.
        special_tokens: number of tokens that the tokenizer adds to every text.
    """

    def __init__(self, tokenizer: tokenizers.Tokenizer) -> None:
        """Prepare counting.

        Args:
            tokenizer: without padding and truncation.
        """
        self._tokenizer = tokenizer
        self.special_tokens = int(tokenizer.num_special_tokens_to_add(False))
        self.exact = (
            isinstance(tokenizer.pre_tokenizer, tokenizers.pre_tokenizers.BertPreTokenizer)
            and isinstance(tokenizer.normalizer, tokenizers.normalizers.BertNormalizer)
            and tokenizer.normalizer.handle_chinese_chars
        )
        words = _WORDS if self.exact else _SPACED_WORDS
        added = (one.content for one in tokenizer.get_added_tokens_decoder().values())
        self._added = [one for one in added if one]
        self._pattern = re.compile(words)
        self._pattern_with_added = re.compile("|".join([*map(re.escape, self._added), words]))
        self._counts: dict[str, int] = {}
        self._kept_characters = 0

    def count(self, texts: Sequence[str]) -> list[int]:
        """Number of tokens of each text, without special tokens, by the tokenizer itself."""
        found: list[int] = []
        for begin in range(0, len(texts), _BATCH):
            batch = list(texts[begin : begin + _BATCH])
            encodings = self._tokenizer.encode_batch_fast(batch, add_special_tokens=False)
            found += map(len, encodings)
        return found

    def pieces(self, text: str, max_tokens: int, max_characters: int) -> CountedPieces:
        """Cut a text into words, punctuation and white space, and count the tokens of each.

        Args:
            text: valid Unicode, without surrogates.
            max_tokens: longer pieces are cut further.
            max_characters: longer pieces are cut further.
        """
        added = any(one in text for one in self._added)
        pattern = self._pattern_with_added if added else self._pattern
        lengths: list[NDArray[np.int32]] = []
        counts: list[NDArray[np.int32]] = []
        forced: list[int] = []
        total = 0
        for begin, end in _blocks(text):
            if begin and text[begin] not in SPACES:
                forced.append(total)
            found = pattern.findall(text, begin, end)
            length, count = self._measure(found)
            long = np.flatnonzero((count > max_tokens) | (length > max_characters))
            if len(long):
                found, inside = self._divide(found, long.tolist(), max_tokens, max_characters)
                forced += [total + index for index in inside]
                length, count = self._measure(found)
            lengths.append(length)
            counts.append(count)
            total += len(found)
        return CountedPieces(_cumulated(lengths), _cumulated(counts), forced)

    def _measure(self, pieces: list[str]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Characters and tokens of each piece."""
        if self._kept_characters > _MAX_KEPT_CHARACTERS:
            self._counts, self._kept_characters = {}, 0
        known = self._counts  # another thread may replace the attribute, but removes nothing
        missing = [one for one in set(pieces) if one not in known]
        if missing:
            known.update(zip(missing, self.count(missing), strict=True))
            self._kept_characters += sum(map(len, missing))
        return (
            np.fromiter(map(len, pieces), np.int32, len(pieces)),
            np.fromiter(map(known.__getitem__, pieces), np.int32, len(pieces)),
        )

    def _divide(
        self, pieces: list[str], long: list[int], max_tokens: int, max_characters: int
    ) -> tuple[list[str], list[int]]:
        """The pieces with the long ones divided, and which of them now begin inside a word."""
        divided: list[str] = []
        inside: list[int] = []
        done = 0
        for index in long:
            divided += pieces[done:index]
            windows = self._windows(pieces[index], max_tokens, max_characters)
            if not pieces[index].isspace():
                inside += range(len(divided) + 1, len(divided) + len(windows))
            divided += windows
            done = index + 1
        return divided + pieces[done:], inside

    def _windows(self, piece: str, max_tokens: int, max_characters: int) -> list[str]:
        """A piece cut at equal distances, and windows with too many tokens in halves of halves."""
        windows = [
            piece[start : start + max_characters] for start in range(0, len(piece), max_characters)
        ]
        while True:
            # All at once: a call of the tokenizer costs more than a short text.
            fits = [
                count <= max_tokens or len(window) == 1
                for window, count in zip(windows, self.count(windows), strict=True)
            ]
            if all(fits):
                return windows
            windows = [
                part
                for window, fit in zip(windows, fits, strict=True)
                for part in ((window,) if fit else _halves(window))
            ]


def _halves(text: str) -> tuple[str, str]:
    middle = len(text) // 2
    return text[:middle], text[middle:]


def _blocks(text: str) -> Iterator[tuple[int, int]]:
    """Half-open ranges of a text, which end before white space if there is any."""
    begin = 0
    while begin < len(text):
        end = min(begin + _BLOCK, len(text))
        if end < len(text):
            space = max(text.rfind("\n", begin + 1, end), text.rfind(" ", end - _BLOCK // 8, end))
            end = space if space > begin else end
        yield begin, end
        begin = end


def _cumulated(parts: list[NDArray[np.int32]]) -> NDArray[np.int32]:
    """The sums before each element, and the sum of all."""
    sums = np.zeros(sum(map(len, parts)) + 1, np.int32)
    if parts:
        np.cumsum(np.concatenate(parts), out=sums[1:])
    return sums
