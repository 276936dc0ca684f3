"""`best_of`: generate more candidates than choices and return the likeliest ones.

The engine treats candidates of a prompt like choices: they share the prompt's blocks and each has its
own seed (`fanout.choice_seed`). A candidate's score is the mean raw logprob of its tokens, which does
not favour short or long answers.
"""

import math
from collections.abc import Sequence

from app.server.wire.errors import bad_request
from app.server.wire.schemas import CompletionRequest
from engine.api.request import RequestOutput


def check_best_of(body: CompletionRequest) -> None:
    """Refuse an invalid `best_of`; one equal to `n` has no effect.

    Raises:
        ApiError: 400 for fewer candidates than choices, or for more candidates with `stream`.
    """
    if body.candidates < body.choices:
        raise bad_request(
            f"`best_of` is {body.best_of} and `n` is {body.choices}; it must be at least `n`.",
            param="best_of",
        )
    if body.stream and body.candidates > body.choices:
        raise bad_request(
            "`best_of` chooses among complete answers, which cannot be streamed; omit `stream`.",
            param="best_of",
        )


def best_candidates(
    outputs: Sequence[RequestOutput], *, n: int, candidates: int
) -> list[RequestOutput]:
    """The `n` likeliest candidates of each prompt, best first; ties keep their order.

    Args:
        outputs: finished candidates with logprobs, prompt by prompt.
        n: choices to keep for each prompt. If it equals `candidates`, the order does not change.
        candidates: candidates of each prompt.
    """
    if n == candidates:
        return list(outputs)
    best: list[RequestOutput] = []
    for first in range(0, len(outputs), candidates):
        ranked = sorted(outputs[first : first + candidates], key=mean_logprob, reverse=True)
        best += ranked[:n]
    return best


def mean_logprob(output: RequestOutput) -> float:
    """Mean raw logprob of an answer's tokens, its stop token included; -inf without tokens."""
    logprobs = output.logprobs
    return math.fsum(logprobs) / len(logprobs) if logprobs else -math.inf
