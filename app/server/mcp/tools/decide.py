"""The tool `decide`: a yes or no, a choice or a score, from the probabilities of one token.

It is one question of `POST /v1/decisions`. What the model says about an empty text is not subtracted: hosts
ask whether something is in a text, and for an empty one the answer is no.
"""

from typing import Annotated, Any, Literal

from pydantic import Field

from app.server.mcp.api_client import ApiClient
from app.server.mcp.tool import Arguments, Output, Tool, ToolCall, ToolError
from app.server.mcp.tools.served_models import ModelName, generating_model
from engine.api.decisions import MARGIN, MIN_LABEL_MASS, NO, YES
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

    def answers(self) -> tuple[str, ...]:
        """The options that the model chooses from.

        Raises:
            ToolError: they do not fit the kind.
        """
        if self.kind == "choice":
            if self.options is None or not 2 <= len(set(self.options)) == len(self.options):
                raise ToolError("decide: a choice needs `options`, 2 to 26 different texts.")
            return tuple(self.options)
        if self.options is not None:
            raise ToolError(f"decide: `options` has no meaning for the kind {self.kind!r}.")
        if self.kind == "yes_no":
            return YES, NO
        if not 1 <= self.high - self.low < MAX_OPTIONS:
            raise ToolError(f"decide: a scale from `low` to `high` has 2 to {MAX_OPTIONS} steps.")
        return tuple(str(step) for step in range(self.low, self.high + 1))


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
    options = given.answers()
    body = {
        "model": await generating_model(call.api, given.model),
        "input": given.question if given.text is None else given.text,
        "questions": [_question(given, options)],
        "min_label_mass": 0,
    }
    return _output(options, await _answer(call.api, body))


def _question(given: DecideArguments, options: tuple[str, ...]) -> dict[str, Any]:
    head = {"instructions": given.question}
    if given.kind == "yes_no":
        return {**head, "type": "predicate"}
    if given.kind == "choice":
        return {**head, "type": "choice", "choices": [{"value": one} for one in options]}
    return {**head, "type": "score", "levels": [{"label": one} for one in options]}


async def _answer(api: ApiClient, body: dict[str, Any]) -> dict[str, Any]:
    (answer,) = (await api.post("/v1/decisions", body))["answers"]
    return dict(answer)


def _output(options: tuple[str, ...], answer: dict[str, Any]) -> Decided:
    mean = None
    if answer["type"] == "predicate":
        shares = [answer["probability"], 1 - answer["probability"]]
    else:
        shares = [one["probability"] for one in answer["probabilities"]]
    if answer["type"] == "score":
        mean = int(options[0]) + answer["score"]
    return Decided(
        answer=options[max(range(len(shares)), key=shares.__getitem__)],
        probabilities=dict(zip(options, shares, strict=True)),
        sure=not answer["abstained"] and answer["label_mass"] >= MIN_LABEL_MASS,
        score=mean,
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
