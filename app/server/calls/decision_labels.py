"""Labels of a question's options: letters, or with more than 26 options a letter and a digit.

Every letter and every digit is one token, so the probability of a label is read from one row, or as the
product of two: that of its letter, and that of its digit behind the letter. No two labels begin with the same
tokens, whatever their options begin with.
"""

from collections.abc import Callable, Sequence

from agents.api.errors import ModelFailure
from agents.model.decisions import PREFIX, Letters, letters
from agents.model.question import MAX_OPTIONS as LETTERS
from agents.model.question import labelled

_DIGITS = 10


class Labels:
    """How one tokenizer writes the labels of questions of up to some number of options.

    Attributes:
        prefix: text that an answer begins with before its label.
        token_ids: the tokens whose probabilities every row reports.
    """

    def __init__(self, encode: Callable[[str], list[int]], options: int) -> None:
        """Find the tokens.

        Args:
            encode: token ids of a text.
            options: the most that a question has.

        Raises:
            ModelFailure: the tokenizer has no single tokens for letters or digits.
        """
        found = letters(encode)
        self.prefix = PREFIX if found.prefix else ""
        self.token_ids = found.ids
        if options > LETTERS:
            self.token_ids += _digits(encode, found)

    def asked(self, text: str, options: Sequence[str], order: Sequence[int]) -> str:
        """A question with its options, in an order, behind their labels."""
        count = len(options)
        if count <= LETTERS:
            return labelled(
                text, options, order, [_letter(at) for at in range(count)], "one letter"
            )
        names = [f"{_letter(at // _DIGITS)}{at % _DIGITS}" for at in range(count)]
        return labelled(text, options, order, names, "one letter and one digit")

    def begun(self, options: int) -> list[tuple[int, ...]]:
        """The beginnings of a label whose next tokens' probabilities are needed, one for each row."""
        if options <= LETTERS:
            return [()]
        return [(), *((one,) for one in self.token_ids[: -(-options // _DIGITS)])]

    @staticmethod
    def log_probabilities(options: int, rows: Sequence[Sequence[float]]) -> list[float]:
        """The log-probability of each label.

        Args:
            options: how many.
            rows: of each row of `begun` the log-probabilities of `token_ids`.
        """
        if options <= LETTERS:
            return list(rows[0][:options])
        return [
            rows[0][at // _DIGITS] + rows[1 + at // _DIGITS][LETTERS + at % _DIGITS]
            for at in range(options)
        ]


def _letter(at: int) -> str:
    return chr(65 + at)


def _digits(encode: Callable[[str], list[int]], found: Letters) -> tuple[int, ...]:
    """The tokens of the digits behind a letter.

    Raises:
        ModelFailure: they are no single, different tokens, or depend on the letter.
    """
    start = f"{PREFIX} " if found.prefix else ""
    digits = [encode(f"{start}A{digit}")[-1] for digit in range(_DIGITS)]
    if len(set(digits)) == _DIGITS and all(
        encode(f"{start}{_letter(at)}{digit}") == [*found.prefix, letter, token]
        for at, letter in enumerate(found.ids)
        for digit, token in enumerate(digits)
    ):
        return tuple(digits)
    raise ModelFailure("The model's tokenizer has no single tokens for digits.")
