"""`Labels`: the tokens whose probabilities are those of answers.

A predicate is answered with a word, yes or no, in any spelling that is one token: capitals count as small
letters. Any other question is answered with a letter, or with more than 26 options with a letter and a digit.
Every letter and every digit is one token, so the probability of a label is read from one row, or as the
product of two: that of its letter, and that of its digit behind the letter. No two labels begin with the same
tokens, whatever their options begin with.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from engine.api.errors import InvalidRequest

LETTERS = 26
PREFIX = "Answer:"
"""What an answer begins with, where the tokenizer keeps it apart from the label."""
_DIGITS = 10
_WORDS = (("yes", "Yes", "YES"), ("no", "No", "NO"))
Tokenize = Callable[[str], list[int]]


class NoLabels(InvalidRequest):
    """The model's tokenizer does not write the labels of a question as single, different tokens."""

    code = "model_not_supported"

    def __init__(self, what: str) -> None:
        super().__init__(f"The model's tokenizer has no single tokens for {what}.", param="model")


@dataclass(frozen=True, slots=True)
class Letters:
    """How a tokenizer writes the letters at the start of an answer.

    Attributes:
        prefix: tokens of the answer before the letter.
        ids: one token per letter, A first.
    """

    prefix: tuple[int, ...]
    ids: tuple[int, ...]


def letters(tokenize: Tokenize, count: int = LETTERS) -> Letters:
    """The letters behind a prefix that keeps its own tokens, else at the start of the answer.

    Args:
        tokenize: token ids of a text.
        count: how many letters.

    Raises:
        NoLabels: they are not single, different tokens.
    """
    for prefix in (PREFIX, ""):
        begun = tokenize(prefix) if prefix else []
        ids = [_behind(tokenize, prefix, begun, _letter(at)) for at in range(count)]
        found = tuple(one for one in ids if one is not None)
        if len(set(found)) == count:
            return Letters(tuple(begun), found)
    raise NoLabels("letters")


class Labels:
    """How one tokenizer writes the labels of questions with up to some number of options.

    Attributes:
        prefix: text that an answer begins with before its label.
        word_ids: the tokens of both words, those of yes first; empty if the tokenizer has none.
        letter_ids: the tokens of the letters, and of the digits where they are needed.
    """

    def __init__(self, tokenize: Tokenize, options: int) -> None:
        """Find the tokens.

        Args:
            tokenize: token ids of a text.
            options: the most that a question has.

        Raises:
            NoLabels: the tokenizer has no single tokens for letters or digits.
        """
        found = letters(tokenize)
        self.prefix = PREFIX if found.prefix else ""
        self._yes, no = _words(tokenize, self.prefix, found.prefix)
        self.word_ids = (*self._yes, *no) if self._yes and no else ()
        self.letter_ids = found.ids
        if options > LETTERS:
            self.letter_ids += _digits(tokenize, found)

    def names(self, options: int) -> list[str]:
        """The labels of a question, first to last."""
        if options <= LETTERS:
            return [_letter(at) for at in range(options)]
        return [f"{_letter(at // _DIGITS)}{at % _DIGITS}" for at in range(options)]

    def begun(self, options: int) -> list[tuple[int, ...]]:
        """The beginnings of a label whose next tokens' probabilities are needed, one for each row."""
        if options <= LETTERS:
            return [()]
        return [(), *((one,) for one in self.letter_ids[: -(-options // _DIGITS)])]

    @staticmethod
    def log_probabilities(options: int, rows: Sequence[Sequence[float]]) -> list[float]:
        """The log-probability of each letter's label.

        Args:
            options: how many.
            rows: of each row of `begun` the log-probabilities of `letter_ids`.
        """
        if options <= LETTERS:
            return list(rows[0][:options])
        return [
            rows[0][at // _DIGITS] + rows[1 + at // _DIGITS][LETTERS + at % _DIGITS]
            for at in range(options)
        ]

    def word_log_probabilities(self, row: Sequence[float]) -> list[float]:
        """The log-probabilities of yes and no, each the sum of its spellings.

        Args:
            row: the log-probabilities of `word_ids`.
        """
        split = len(self._yes)
        return [_log_sum(row[:split]), _log_sum(row[split:])]


def _words(tokenize: Tokenize, prefix: str, begun: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """The tokens of both words' spellings behind a prefix."""
    return tuple(
        tuple(
            dict.fromkeys(
                one
                for spelling in spellings
                if (one := _behind(tokenize, prefix, begun, spelling)) is not None
            )
        )
        for spellings in _WORDS
    )


def _behind(tokenize: Tokenize, prefix: str, begun: Sequence[int], label: str) -> int | None:
    """The one token of a label behind a prefix; None if it is not exactly one."""
    ids = tokenize(f"{prefix} {label}" if prefix else label)
    return ids[-1] if len(ids) == len(begun) + 1 and ids[:-1] == list(begun) else None


def _letter(at: int) -> str:
    return chr(65 + at)


def _digits(tokenize: Tokenize, found: Letters) -> tuple[int, ...]:
    """The tokens of the digits behind a letter.

    Raises:
        NoLabels: they are no single, different tokens, or depend on the letter.
    """
    start = f"{PREFIX} " if found.prefix else ""
    digits = [tokenize(f"{start}A{digit}")[-1] for digit in range(_DIGITS)]
    if len(set(digits)) == _DIGITS and all(
        tokenize(f"{start}{_letter(at)}{digit}") == [*found.prefix, letter, token]
        for at, letter in enumerate(found.ids)
        for digit, token in enumerate(digits)
    ):
        return tuple(digits)
    raise NoLabels("digits")


def _log_sum(values: Sequence[float]) -> float:
    top = max(values)
    if top == -math.inf:
        return top
    return top + math.log(sum(math.exp(one - top) for one in values))
