"""`suffix` of `/v1/completions`: fill-in-the-middle, for models that have the tokens for it."""

from collections.abc import Callable
from dataclasses import replace

from app.server.calls.model import LoadedModel
from app.server.calls.prompts import infill_ids, prompt_ids
from app.server.wire.errors import bad_request
from app.server.wire.schemas import CompletionRequest
from engine.api.request import SamplingParams
from engine.text.infill import InfillTokens


def infill_tokens(body: CompletionRequest, model: LoadedModel) -> InfillTokens | None:
    """The tokens for a body with a suffix; None without one. An empty suffix is none.

    Raises:
        ApiError: 400 for a model without such tokens, or fields that have no meaning beside a suffix.
    """
    if not body.suffix:
        return None
    tokens = model.tokenizer.infill
    if tokens is None:
        raise bad_request(
            f"{model.info.name!r} has no tokens for fill-in-the-middle, so it cannot use `suffix`: leave "
            "the field out, or load a model for code completion.",
            param="suffix",
            code="unsupported_parameter",
        )
    for name, given in (("echo", body.echo), ("continued_tokens", body.continued_tokens)):
        if given:
            raise bad_request(
                f"`{name}` is not allowed with `suffix`: the answer does not follow the prompt's text.",
                param=name,
            )
    return tokens


async def completion_prompts(
    body: CompletionRequest,
    model: LoadedModel,
    tokens: InfillTokens | None,
    check: Callable[[str], str],
) -> list[tuple[int, ...]]:
    """Token ids of every prompt of a completion.

    Args:
        body: the request body.
        model: the model.
        tokens: what `infill_tokens` returned for it.
        check: returns what the model reads in place of a text.

    Raises:
        ApiError: 400 for an id outside the vocabulary.
    """
    add_bos = body.add_special_tokens is not False
    if tokens is None:
        return [
            await prompt_ids(model, prompt, add_bos=add_bos, check=check) for prompt in body.prompts
        ]
    suffix = body.suffix or ""
    return [
        await infill_ids(model, tokens, prompt, suffix, add_bos=add_bos, check=check)
        for prompt in body.prompts
    ]


def infill_sampling(sampling: SamplingParams, tokens: InfillTokens | None) -> SamplingParams:
    """The parameters with which the middle also ends where the next file or another gap would begin."""
    if tokens is None or sampling.ignore_eos:
        return sampling
    stops = dict.fromkeys((*sampling.stop_token_ids, *sorted(tokens.end_ids)))
    return replace(sampling, stop_token_ids=tuple(stops))
