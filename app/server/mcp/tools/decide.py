"""The tool `decide`: a yes or no, a choice or a score, from the probabilities of one token.

It is one question of `POST /v1/decisions`. What the model says about an empty text is not subtracted: hosts
ask whether something is in a text, and for an empty one the answer is no.
"""

from typing import Annotated, Literal

from pydantic import Field

from app.server.mcp.tool import Arguments, Output, Tool, ToolCall, ToolError
from app.server.mcp.tools.served_models import ModelName, generating_model
from engine.api.decisions import (
    MARGIN,
    DecisionQuestion,
    DecisionRules,
    choice,
    predicate,
    score,
)
from engine.clients.decision_wire import decision_body, decisions
from engine.decisions.labels import LETTERS as MAX_OPTIONS


class DecideArguments(Arguments):
    """The question, and what its answers can be."""

    question: Annotated[str, Field(min_length=1, description="What to decide.")]
    text: Annotated[str | None, Field(description="The text that the question is about.")] = None
    kind: Annotated[
        Literal["yes_no", "choice", "score"],
        Field(description="yes_no, choice (one of `options`) or score (from `low` to `high`)."),
    ] = "yes_no"
    options: Annotated[
        list[Annotated[str, Field(min_length=1)]] | None,
        Field(max_length=MAX_OPTIONS, description="For a choice: 2 to 26 different answers."),
    ] = None
    low: Annotated[int, Field(description="For a score: the lowest.")] = 1
    high: Annotated[int, Field(description="For a score: the highest.")] = 5
    model: ModelName = None

    def asked(self) -> DecisionQuestion:
        """The question with the options that the model chooses from.

        Raises:
            ToolError: they do not fit the kind.
            InvalidRequest: it says nothing.
        """
        if self.kind == "choice":
            if self.options is None or not 2 <= len(set(self.options)) == len(self.options):
                raise ToolError("decide: a choice needs `options`, 2 to 26 different texts.")
            return choice(self.question, self.options)
        if self.options is not None:
            raise ToolError(f"decide: `options` has no meaning for the kind {self.kind!r}.")
        if self.kind == "yes_no":
            return predicate(self.question)
        if not 1 <= self.high - self.low < MAX_OPTIONS:
            raise ToolError(f"decide: a scale from `low` to `high` has 2 to {MAX_OPTIONS} steps.")
        return score(self.question, range(self.low, self.high + 1))


class Decided(Output):
    """The decision."""

    answer: Annotated[str, Field(description="The likeliest option.")]
    probabilities: Annotated[dict[str, float], Field(description="By option; they sum to 1.")]
    sure: Annotated[
        bool,
        Field(
            description=f"Whether it is ahead of the next one by {MARGIN} or more, and the model would say "
            "one of the options at all."
        ),
    ]
    score: Annotated[
        float | None,
        Field(description="For a score: the mean of the scale under the probabilities."),
    ] = None

    @property
    def text(self) -> str:
        """The answer with its probability."""
        certainty = f"{self.probabilities[self.answer]:.0%}" + ("" if self.sure else ", not sure")
        mean = "" if self.score is None else f"; mean {self.score:.2f}"
        return f"{self.answer} ({certainty}{mean})"


async def decide(call: ToolCall, given: DecideArguments) -> Decided:
    """Decide a question."""
    question, rules = given.asked(), DecisionRules()
    text = given.question if given.text is None else given.text
    model = await generating_model(call.api, given.model)
    body = decision_body(model, text, [question], rules)
    found = decisions(await call.api.post("/v1/decisions", body), [question], rules)
    (answer,) = found.answers
    return Decided(
        answer=answer.label,
        probabilities=dict(zip(question.options, answer.probabilities, strict=True)),
        sure=answer.outcome == "decided",
        score=answer.score if question.kind == "score" else None,
    )


DECIDE = Tool(
    "decide",
    "Decide by probabilities",
    "Let the local model answer yes or no, choose one of several options, or give a score, with the "
    "probability of each answer. It takes one token and is much faster than `chat`; good for "
    "classifying, routing and rating many texts.",
    DecideArguments,
    Decided,
    decide,
)
