"""`Choice`: one label of several."""

from pydantic import Field

from agents.outputs.base import Output, Probability, Word


class Choice(Output):
    """A label. `abstained` says that no label was clearly the best; `label` is then the fallback."""

    label: Word = ""
    probabilities: dict[Word, Probability] = Field(default_factory=dict)
    abstained: bool = False
