"""Response fields beyond OpenAI's API, added only if the request asks for them."""

from typing import Any

from app.server.wire.schemas import SamplingFields
from engine.api.request import RequestOutput, Timings, TokenBatch


def choice_extras(body: SamplingFields, part: RequestOutput | TokenBatch) -> dict[str, Any]:
    """`token_ids` (vLLM's name), and `timings` with seed, cached and drafted tokens, if requested.

    `token_id_logprobs` has for each token the logprobs of the request's `logprob_token_ids`; a fork may
    have its parent's.

    `accepted_drafts` are the indices, in this part, of the tokens that are accepted draft tokens.
    """
    extras: dict[str, Any] = {}
    if body.return_token_ids:
        extras["token_ids"] = list(part.token_ids)
    if part.token_id_logprobs:
        extras["token_id_logprobs"] = [list(values) for values in part.token_id_logprobs]
    if body.return_timings:
        extras["seed"] = part.seed
        extras["cached_tokens"] = part.cached_tokens
        extras["accepted_drafts"] = [at for at, drafted in enumerate(part.drafted) if drafted]
        extras["timings"] = relative_timings(part.timings)
    return extras


def wants_every_token(body: SamplingFields) -> bool:
    """Whether a stream must report tokens whose text is still held back."""
    return bool(body.return_token_ids or body.return_timings or body.logprob_token_ids)


def relative_timings(timings: Timings) -> dict[str, float | None]:
    """Seconds since queueing, because monotonic clocks of two machines cannot be compared."""
    return {
        name: None if instant is None else instant - timings.queued
        for name, instant in (
            ("scheduled", timings.scheduled),
            ("first_token", timings.first_token),
            ("last_token", timings.last_token),
        )
    }
