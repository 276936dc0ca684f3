"""How many tokens a text will take, estimated with the model's own tokenizer.

A character is at most four bytes and a token at least one, so four tokens a character are certain to be
enough, and some ten times too many: with that reserve no answer of a useful length ever fits. The estimate is
measured instead. An answer that takes more is closed by program (`closed_json`), and a text ends at its last
whole sentence (`whole_sentences`).
"""

import math
from collections.abc import Callable, Sequence

SAMPLE = """\
The parser reads each line of the configuration, skips comments and reports the first key it does not know.
def load(path: str) -> dict[str, int]:
    with open(path, encoding="utf-8") as file:
        return {key.strip(): int(value) for key, value in (line.split("=") for line in file)}
{"id": "s2", "agent": "security_audit", "input": "the changed files", "needs": ["s1"], "done_when": "done"}
"""
MARGIN = 1.4
"""Factor for texts that are denser than `SAMPLE`, such as other languages and figures."""
FILLED = 0.4
"""Share of its longest form that an answer takes: few lists are full, few lines as long as they may be."""
MIN_TEXT_TOKENS = 384
"""Room of a text beside what its material allows: three paragraphs."""
GROWTH = 1.5
"""A text written from material may be so much longer than that."""


def tokens_per_character(tokenize: Callable[[str], Sequence[int]], material: str = "") -> float:
    """Tokens that a character takes, margin included: the larger of `SAMPLE`'s and the material's."""
    rates = [len(tokenize(text)) / len(text) for text in (SAMPLE, material[:4_000]) if text]
    return min(4.0, MARGIN * max(rates))


def tokens_of(characters: int, rate: float) -> int:
    """Estimated tokens of a text of at most so many characters."""
    return math.ceil(characters * rate)


def answer_tokens(characters: int, rate: float) -> int:
    """Estimated tokens of an answer whose longest form has so many characters."""
    return tokens_of(math.ceil(FILLED * characters), rate)


def text_room(material_tokens: int, left: int) -> int:
    """Tokens that a text may take: by its material, and by what context and budget have left."""
    return min(left, MIN_TEXT_TOKENS + math.ceil(GROWTH * material_tokens))
