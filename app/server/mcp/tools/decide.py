"""The tool `decide`: a yes or no, a choice or a score, from the probabilities of one token.

Nothing is generated or parsed: the log-probabilities of the options' letters are read behind the question, in
two orders of the options, and averaged (`agents.model.decisions`). Those of the question about an empty text
are not subtracted: hosts ask whether something is in a text, and for an empty one the answer is no. With
Qwen2.5-Coder 1.5B, 25 of 30 yes-or-no questions were right without it, and 23 with it.
"""

import asyncio
from typing import Annotated, Any, Literal

from pydantic import Field

from agents.model.decisions import PREFIX, combine, letter_texts, letters, orders
from agents.model.question import MAX_OPTIONS, Decision, Question
from app.server.mcp.api_client import ApiClient
from app.server.mcp.tool import Arguments, Output, Tool, ToolCall, ToolError
from app.server.mcp.tools.served_models import ModelName, generating_model

_YES, _NO = "yes", "no"
_SUBJECT = "{subject}"
"""What a question of agents stands for; in a question of a host it is just text, and stays."""


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
            return _YES, _NO
        if not 1 <= self.high - self.low < MAX_OPTIONS:
            raise ToolError(f"decide: a scale from `low` to `high` has 2 to {MAX_OPTIONS} steps.")
        return tuple(str(step) for step in range(self.low, self.high + 1))


class Decided(Output):
    """The decision."""

    answer: Annotated[str, Field(description="The likeliest option.")]
    probabilities: Annotated[dict[str, float], Field(description="By option; they sum to 1.")]
    sure: Annotated[bool, Field(description="Whether it is ahead of the next one by 0.1 or more.")]
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
    answers = given.answers()
    model = await generating_model(call.api, given.model)
    question = Question("question", given.question, answers)
    prefix, ids = await _letters(call.api, model, len(answers))
    forward, backward = await asyncio.gather(
        *(
            _log_probabilities(call.api, model, _content(question, given.text, order), prefix, ids)
            for order in orders(len(answers))
        )
    )
    return _output(given, combine(question, (forward, backward[::-1])))


def _output(given: DecideArguments, decision: Decision) -> Decided:
    mean = None
    if given.kind == "score":
        mean = sum(int(step) * share for step, share in decision.probabilities.items())
    return Decided(
        answer=decision.label,
        probabilities=decision.probabilities,
        sure=not decision.abstained,
        score=mean,
    )


def _content(question: Question, text: str | None, order: tuple[int, ...]) -> str:
    about = question.about(_SUBJECT, order)
    return about if text is None else f"{text}\n\n{about}"


async def _letters(api: ApiClient, model: str, count: int) -> tuple[str, list[int]]:
    """What the answer begins with, and the token of each letter behind it.

    Raises:
        ModelFailure: letters are no single tokens.
        ApiRefusal: from the API.
    """
    texts = [text for prefix, found in letter_texts(count) for text in (prefix, *found) if text]

    async def tokens(text: str) -> list[int]:
        body = {"model": model, "prompt": text, "add_special_tokens": False}
        return list((await api.post("/tokenize", body))["tokens"])

    known = dict(zip(texts, await asyncio.gather(*map(tokens, texts)), strict=True))
    found = letters(known.__getitem__, count)
    return PREFIX if found.prefix else "", list(found.ids)


async def _log_probabilities(
    api: ApiClient, model: str, content: str, prefix: str, ids: list[int]
) -> list[float]:
    """The log-probabilities of tokens as the first of an answer that begins with `prefix`."""
    messages = [{"role": "user", "content": content}]
    if prefix:
        messages.append({"role": "assistant", "content": prefix})
    body: dict[str, Any] = {
        "model": model,
        "messages": messages,
        "max_tokens": 1,
        "temperature": 0,
        "ignore_eos": True,
        "logprob_token_ids": ids,
    }
    answer = await api.post("/v1/chat/completions", body)
    return list(answer["choices"][0]["token_id_logprobs"][0])


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
