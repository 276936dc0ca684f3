"""`CallDecider`: whether an answer calls a tool, and how many, from probabilities of single tokens.

Small models that are offered tools call one whatever they are asked. What they write tells little, but the
probabilities do (`docs/tools.md`). Two rows of one token each are computed behind the same prompt, whose KV
they share:

* *The question*: a further turn of the user asks how many calls are needed. Its score is -log P(0) among the
  digits.
* *The name*: the call is begun up to the tool's name. Its score is log p, and a twentieth of the logarithm of
  p / (1 - p), where p is the probability that a declared name begins there: models invent a name when no tool
  fits, and hesitate when one nearly does.

With many tools, the name counts more and the question less. A tool is called if the sum reaches the model's
threshold. With more than one call likely enough, their number
is the likeliest one. After a tool's result one row is computed: whether the answer begins like a call.

An answer that calls none is asked for by a further turn of the user as well: with tools in the prompt, small
models go on to write a call into their text.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from engine.api.request import RequestOutput, SamplingParams, TokenBatch
from engine.text.chat_tokenizer import ChatTokenizer
from engine.text.continued_message import Render
from engine.text.tool_calls.form import CallForm
from engine.text.tool_calls.thresholds import CallThresholds

MAX_CALLS = 8
"""The largest number of calls that is decided on."""
QUESTION = (
    "How many calls of the functions above do exactly what I asked for? "
    "Answer with a number only, 0 if there is none."
)
NO_CALL = "Answer that directly in words; no function is needed."
"""Of four wordings the one with which the 1.5B answered all of six questions; one that spoke of "my last
message" made it answer that it knows none."""
NO_FURTHER_CALL = (
    "Answer my last question now in words. If the results above do not say it, tell me so."
)
"""Of nine wordings tried with the 1.5B after results with and without the answer: one that began with "No
further call is needed" was repeated as the answer; with those that spoke of "my question" or "the question"
the second question of a conversation was answered by the answer to the first, or by the whole file."""
_LEAST_NAME_LOGPROB = -2.0
"""A name counts no more than this against a call: tools of agents overlap."""
_TOOLS_WEIGHT = 0.4
"""What the logarithm of the number of tools adds to the weight of the name, and divides that of the question:
behind the thousands of tokens of an agent's head only the name tells tasks from questions."""
_ODDS_WEIGHT = 0.05
_LEAST_CHANCE = 1e-4
"""Of another name, so that its odds are finite."""
_NUMBER_WEIGHTS = {2: 1.0, 3: 1.2}
_LARGE_NUMBER_WEIGHT = 2.0
"""Small numbers are likelier whatever is asked; these make up for it (measured with BFCL's `parallel`)."""
_MAX_IDS = 64
"""Token ids whose probabilities one request reports."""
_CALL_STARTS = ("```", "``", "{", '{"', "{{", "{\n", '[{"', "<tool_call")
"""How models begin a call, whatever their template asks for."""

Row = tuple[tuple[int, ...], SamplingParams]
"""A prompt to be continued by one token."""
RowOutput = RequestOutput | TokenBatch
"""The output of a row: all of it, or its only batch."""


@dataclass(frozen=True, slots=True)
class CallDecision:
    """What an answer shall be.

    Attributes:
        kind: `call`, calls of tools; `text`, no call; `free`, what the model writes.
        calls: the number of calls.
        score: the evidence for a call; None if none was asked for.
    """

    kind: Literal["call", "text", "free"]
    calls: int = 1
    score: float | None = None


@dataclass(frozen=True, slots=True)
class CallEvidence:
    """What the two rows say about an answer that follows no result.

    Attributes:
        fits: the score of a call.
        several: log P(2 or more) - log P(1).
        number: the likeliest number of calls above one.
    """

    fits: float
    several: float
    number: int

    def calls(
        self,
        thresholds: CallThresholds,
        tools: int,
        *,
        must_call: bool = False,
        parallel: bool = True,
    ) -> int:
        """The number of calls that an answer has; the arguments are those of `CallDecider.decision`."""
        if self.fits < thresholds.fits.of(tools) and not must_call:
            return 0
        return self.number if parallel and self.several >= thresholds.several.of(tools) else 1


class CallDecider:
    """Decides for one model and one form of calls. Cost: two renderings of short conversations."""

    def __init__(
        self,
        tokenizer: ChatTokenizer,
        form: CallForm,
        thresholds: CallThresholds,
        *,
        render: Render | None = None,
    ) -> None:
        """Decide with a model's thresholds; `render` is its chat template if that takes variables."""
        self._tokenizer = tokenizer
        self._form = form
        self._thresholds = thresholds
        self._render = tokenizer.render_chat if render is None else render

    def rows(
        self, prompt: Sequence[int], names: Iterable[str], *, follows_result: bool
    ) -> list[Row]:
        """The rows that `decision` needs; none if the model's vocabulary does not allow to ask.

        Args:
            prompt: the conversation, up to the beginning of the answer.
            names: of the tools that may be called.
            follows_result: whether the answer is about a tool's result (`last_speaker.follows_result`).
        """
        if follows_result:
            return [_row(prompt, self._call_start_ids())]
        question, digits = self.turn(QUESTION), self._digit_ids()
        if not question or not digits:
            return []
        rows = [_row([*prompt, *question], digits)]
        begun = self._begun_ids()
        starts = self._name_ids(names, begun)
        if starts:
            rows.append(_row([*prompt, *begun], starts))
        return rows

    def decision(
        self,
        outputs: Sequence[RowOutput],
        tools: int,
        *,
        follows_result: bool,
        must_call: bool = False,
        parallel: bool = True,
    ) -> CallDecision:
        """What the rows say.

        Args:
            outputs: of the rows, in their order.
            tools: number of tools that may be called.
            follows_result: as of `rows`.
            must_call: whether a call was asked for: only their number is decided.
            parallel: whether there may be more than one call.
        """
        if not outputs:
            return CallDecision("call" if must_call else "free")
        rows = [one.token_id_logprobs[0] for one in outputs]
        if follows_result:
            score = self.again(rows)
            may_call = score >= self._thresholds.again.of(tools)
            return CallDecision("free" if may_call else "text", score=score)
        found = self.evidence(rows, tools)
        calls = found.calls(self._thresholds, tools, must_call=must_call, parallel=parallel)
        return CallDecision("call" if calls else "text", calls, found.fits)

    @staticmethod
    def evidence(rows: Sequence[Sequence[float]], tools: int) -> CallEvidence:
        """The scores of the question and the name.

        Args:
            rows: the log-probabilities of each row's tokens.
            tools: number of tools that may be called.
        """
        counts = [math.exp(one) for one in rows[0]]
        weight = 1 + _TOOLS_WEIGHT * math.log(max(1, tools))
        fits = -math.log(max(counts[0] / (sum(counts) or 1.0), 1e-9)) / weight
        if len(rows) > 1:
            fits += _name_score(_log_sum(rows[1]), weight)
        number = max(
            range(2, MAX_CALLS + 1),
            key=lambda one: counts[one] * _NUMBER_WEIGHTS.get(one, _LARGE_NUMBER_WEIGHT),
        )
        return CallEvidence(fits, _log_ratio(sum(counts[2:]), counts[1]), number)

    @staticmethod
    def again(rows: Sequence[Sequence[float]]) -> float:
        """The score of another call after a result: the logarithm of the probability that one begins."""
        return _log_sum(rows[0])

    def turn(self, text: str) -> list[int]:
        """See `further_turn`."""
        return further_turn(self._tokenizer, text, self._render)

    def _begun_ids(self) -> list[int]:
        """Token ids of a call's beginning up to the tool's name."""
        return self._tokenizer.encode(self._form.opening + self._form.begun, special=True)

    def _name_ids(self, names: Iterable[str], begun: list[int]) -> list[int]:
        """The first tokens of the names after `begun`; none if one of them joins the text before it."""
        starts = dict[int, None]()
        for name in names:
            ids = self._tokenizer.encode(self._form.opening + self._form.begun + name, special=True)
            if ids[: len(begun)] != begun or len(ids) == len(begun):
                return []
            starts[ids[len(begun)]] = None
        return list(starts) if len(starts) <= _MAX_IDS else []

    def _digit_ids(self) -> list[int]:
        """The tokens of 0 to 9 at the beginning of an answer; none if they are not single tokens."""
        ids = [self._tokenizer.encode_rest(str(digit)) for digit in range(10)]
        return [one[0] for one in ids] if all(len(one) == 1 for one in ids) else []

    def _call_start_ids(self) -> list[int]:
        """The first tokens of what begins a call."""
        starts = [self._tokenizer.encode_rest(text)[0] for text in _CALL_STARTS]
        opening = self._tokenizer.encode(self._form.opening, special=True)
        return list(dict.fromkeys([*starts, *opening[:1]]))


def further_turn(tokenizer: ChatTokenizer, text: str, render: Render) -> list[int]:
    """Token ids of a further turn of the user between a prompt and the answer; empty if there is none."""
    mark = "the-answer-so-far"
    rendered = render(
        [
            {"role": "user", "content": "x"},
            {"role": "assistant", "content": mark},
            {"role": "user", "content": text},
        ]
    )
    _, found, turn = rendered.partition(mark)
    return tokenizer.encode(turn, special=True) if found and text in turn else []


def _row(prompt: Sequence[int], token_ids: Sequence[int]) -> Row:
    sampling = SamplingParams(temperature=0.0, max_tokens=1, logprob_token_ids=tuple(token_ids))
    return tuple(prompt), sampling


def _name_score(logprob: float, weight: float) -> float:
    other = max(0.0, 1 - math.exp(logprob))
    odds = logprob - math.log(other + _LEAST_CHANCE)
    return weight * max(_LEAST_NAME_LOGPROB, logprob) + _ODDS_WEIGHT * odds


def _log_sum(logprobs: Iterable[float]) -> float:
    return math.log(max(sum(math.exp(one) for one in logprobs), 1e-9))


def _log_ratio(one: float, other: float) -> float:
    return math.log(max(one, 1e-9) / max(other, 1e-9))
