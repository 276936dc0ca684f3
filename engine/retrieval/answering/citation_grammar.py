"""The language of an answer that cites: free text, in which only existing passages can be cited.

A citation is a number in brackets. Outside of code a bracket that is followed by a digit must be one of
`[1]` to `[n]`, and no answer begins with a bracket; within backticks anything may follow, because code has
subscripts.
"""

from engine.api.grammar import Grammar

MAX_SOURCES = 64
"""Passages that an answer can cite; more are never put into one prompt."""


def citation_grammar(n: int) -> Grammar:
    """The grammar of answers from `n` passages, for `SamplingParams.grammar`.

    Args:
        n: number of passages, from 0 (no citation is possible) to `MAX_SOURCES`.

    Raises:
        ValueError: `n` is out of range.
    """
    if not 0 <= n <= MAX_SOURCES:
        raise ValueError(f"{n} passages cannot be cited; the limit is {MAX_SOURCES}")
    # `\p{Nd}` and not `\d`, which stands for ASCII digits here: a [７] would be shown like a [7].
    after_bracket = r"[^\p{Nd}\s\[`]"
    numbers = "|".join(map(str, range(1, n + 1)))
    bracket = rf"\[+(?:{after_bracket}|(?:{numbers})\])" if n else rf"\[+{after_bracket}"
    # A number follows the sentence that it is for: one at the beginning would be for nothing, and small
    # models go on from it with the head of a passage.
    begin = r"(?:[^\[`\s]|`[^`]*`)"
    return Grammar.regex(rf"\s*(?:{begin}(?:[^\[`]|{bracket}|`[^`]*`)*)?")
