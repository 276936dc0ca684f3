"""Random texts in which tokenizers differ: runs, scripts, emoji, controls and spellings of tokens."""

import random
from collections.abc import Iterator, Sequence

_FRAGMENTS = (
    "The quick brown fox", " don't", " I'LL", "\n", "\r\n", "\t", " ", "  ", "   ", "e\u0301", "é", "Å", "ﬁ",
    "日本語", "한국어", "प्रवाह", "العربية", "\u0e44\u0e17\u0e22", "👩‍👩‍👧‍👦", "🇫🇷🇩🇪", "👍🏽",
    "\u00a0", "\u200b", "\u2028",
    "12345", " 3.14", "½²٣Ⅷ", "<bos>", "<eos>", "<s>", "</s>", "<unk>", "<start_of_turn>", "<end_of_turn>",
    "<unused7>", "<table>", "</td>", "<0x0A>", "[multimodal]", "▁", "▁▁", "a", "aa", "-", "=", "....", "!!!",
    "def f(x):\n    return x", "http://x.org/?a=b&c", "__init__", "{}", "\"'", "\\n", "\x00", "\x07",
    "\U00040000",
    "\U000e0001", "CamelCase", "ÀÉÎ", "Straße/Weg/",
)  # fmt: skip


def mixed_strings(count: int, *, seed: int, pieces: Sequence[str] = ()) -> Iterator[str]:
    """The texts; with `pieces`, some are made of these."""
    rng = random.Random(seed)
    for _ in range(count):
        kind = rng.randrange(6)
        if kind == 0:
            lengths = (1, 1, 1, 2, 3, 7, 15, 31, 33, 64)
            parts = (
                rng.choice(_FRAGMENTS) * rng.choice(lengths) for _ in range(rng.randrange(1, 8))
            )
            yield "".join(parts)
        elif kind == 1:
            blanks = [" " * rng.randrange(70) for _ in range(3)]
            yield "".join(one + rng.choice(_FRAGMENTS) for one in blanks)
        elif kind == 2:
            yield "".join(_character(rng) for _ in range(rng.randrange(1, 60)))
        elif kind == 3:
            words = pieces or _FRAGMENTS
            yield "".join(rng.choice(words).replace("▁", " ") for _ in range(rng.randrange(1, 20)))
        elif kind == 4:
            yield rng.choice("a-=#.x\n\t e0") * rng.randrange(1, 100)
        else:
            yield "".join(rng.choices("ab -=.\n<>", k=rng.randrange(1, 80)))


def _character(rng: random.Random) -> str:
    low, high = rng.choice(((1, 0x250), (0x250, 0xD800), (0xE000, 0x20000)))
    return chr(rng.randrange(low, high))
