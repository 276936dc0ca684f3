"""`Question`: a decision between a few labels, which a model takes with one token."""

from dataclasses import dataclass

from engine.decisions.labels import LETTERS as MAX_OPTIONS
from engine.decisions.prompts import lettered


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
        shown = [self.options[index] for index in order]
        lines = lettered(shown, [chr(65 + at) for at in range(len(shown))])
        return "\n".join(
            [self.text.replace("{subject}", subject), *lines, "Answer with one letter."]
        )


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
