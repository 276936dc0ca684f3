"""`best_of`: more candidates than asked for, of which the likeliest are the answer.

Candidates of a prompt are to the engine what choices are: they compute it once, and each has a seed
of its own (`fanout.choice_seed`). A candidate's score is the mean of its tokens' raw logprobs, so
that neither a short nor a long answer is better for its length alone.
"""

import math
from collections.abc import Sequence

from app.server.wire.errors import bad_request
from app.server.wire.schemas import CompletionRequest
from engine.api.request import RequestOutput


def check_best_of(body: CompletionRequest) -> None:
    """Refuse a `best_of` that cannot be followed; one equal to `n` asks for nothing.

    Raises:
        ApiError: 400 for fewer candidates than choices, or for a stream of what is not chosen yet.
    """
    if body.candidates < body.choices:
        raise bad_request(
            f"`best_of` is {body.best_of} and `n` is {body.choices}; it must be at least `n`.",
            param="best_of",
        )
    if body.stream and body.candidates > body.choices:
        raise bad_request(
            "`best_of` chooses among whole answers, which cannot be streamed; ask without `stream`.",
            param="best_of",
        )


def best_candidates(
    outputs: Sequence[RequestOutput], *, n: int, candidates: int
) -> list[RequestOutput]:
    """Of every prompt's candidates the `n` likeliest, best first; of equals the earlier one first.

    Args:
        outputs: finished candidates with logprobs, prompt by prompt.
        n: how many to keep for each prompt; all of them stay in their order.
        candidates: how many each prompt has.
    """
    if n == candidates:
        return list(outputs)
    best: list[RequestOutput] = []
    for first in range(0, len(outputs), candidates):
        ranked = sorted(outputs[first : first + candidates], key=mean_logprob, reverse=True)
        best += ranked[:n]
    return best


def mean_logprob(output: RequestOutput) -> float:
    """Mean raw logprob of an answer's tokens, its stop token included; -inf if it has none."""
    logprobs = output.logprobs
    return math.fsum(logprobs) / len(logprobs) if logprobs else -math.inf
