"""`Question`: a decision between a few labels, which a model takes with one token."""

from collections.abc import Sequence
from dataclasses import dataclass

MAX_OPTIONS = 26


@dataclass(frozen=True, slots=True)
class Question:
    """A question with fixed answers.

    Attributes:
        name: identifies it in profiles and events.
        text: the question; `{subject}` stands for what it is about.
        options: the answers, 2 to 26.
        margin: the least difference between the two highest probabilities; below it the model abstains.
    """

    name: str
    text: str
    options: tuple[str, ...]
    margin: float = 0.1

    def __post_init__(self) -> None:
        """Check the number of options."""
        if not 2 <= len(self.options) <= MAX_OPTIONS or len(set(self.options)) < len(self.options):
            raise ValueError(f"{self.name} needs 2 to {MAX_OPTIONS} different options.")

    def about(self, subject: str, order: tuple[int, ...]) -> str:
        """The question as the model reads it, its options in the given order behind letters.

        Args:
            subject: what it is about.
            order: permutation of the options' indices; the first one gets the letter A.
        """
        labels = [chr(65 + at) for at in range(len(order))]
        text = self.text.replace("{subject}", subject)
        return labelled(text, self.options, order, labels, "one letter")


def labelled(
    text: str, options: Sequence[str], order: Sequence[int], labels: Sequence[str], answer: str
) -> str:
    """A question as the model reads it, each option behind a label.

    Args:
        text: the question.
        options: the answers.
        order: permutation of the options' indices; the first one gets the first label.
        labels: as many as options.
        answer: what a label consists of.
    """
    lines = [f"{label}) {options[index]}" for label, index in zip(labels, order, strict=True)]
    return "\n".join([text, *lines, f"Answer with {answer}."])


@dataclass(frozen=True, slots=True)
class Decision:
    """The answer to a question.

    Attributes:
        question: its name.
        label: the most likely option.
        probabilities: by option, calibrated; they sum to 1.
        abstained: whether the margin was too small: the caller's own value stands.
    """

    question: str
    label: str
    probabilities: dict[str, float]
    abstained: bool

    def value(self, otherwise: str) -> str:
        """The label, or `otherwise` if the model abstained."""
        return otherwise if self.abstained else self.label
