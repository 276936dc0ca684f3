"""`SamplingParams` from a request body, and the rules between its fields."""

from app.server.calls.structured import grammar_of
from app.server.wire.errors import bad_request
from app.server.wire.schemas import (
    NO_LIMIT,
    ChatCompletionRequest,
    CompletionRequest,
    SamplingFields,
)
from engine.api.generation_defaults import (
    DEFAULTED_PARAMETERS,
    GenerationDefaults,
    SamplingChoice,
)
from engine.api.request import SamplingParams, seed_from
from engine.api.snapshot import ModelInfo

_FIELDS = (*DEFAULTED_PARAMETERS, "dry_sequence_breakers")
"""Fields with the name and the values of a sampling parameter. Its default is the API's."""


def chat_sampling(body: ChatCompletionRequest, model: ModelInfo) -> SamplingParams:
    """Parameters of a chat completion; without a limit it may fill the context."""
    if body.top_logprobs and not body.logprobs:
        raise bad_request(
            "`top_logprobs` is only allowed with `logprobs: true`.", param="top_logprobs"
        )
    if body.prompt_logprobs is not None and body.stream:
        raise bad_request(
            "`prompt_logprobs` of a chat cannot be streamed; omit `stream`, or use "
            "/v1/completions.",
            param="prompt_logprobs",
        )
    return sampling_fields(
        body,
        logprobs=(body.top_logprobs or 0) if body.logprobs else None,
        prompt_logprobs=body.prompt_logprobs,
        vocab_size=model.vocab_size,
        defaults=model.generation_defaults,
    )


def completion_sampling(body: CompletionRequest, model: ModelInfo) -> SamplingParams:
    """Parameters of a plain completion, which the API limits to 16 tokens by default.

    With `echo` and `logprobs` the prompt's logprobs are requested too.
    """
    ranked = body.candidates > body.choices
    asked = [body.prompt_logprobs, body.logprobs if body.echo else None]
    return sampling_fields(
        body,
        # Candidates are ranked by their logprobs, even if the response does not contain them.
        logprobs=0 if ranked and body.logprobs is None else body.logprobs,
        prompt_logprobs=max((one for one in asked if one is not None), default=None),
        vocab_size=model.vocab_size,
        defaults=model.generation_defaults,
    )


def sampling_fields(
    body: SamplingFields,
    *,
    logprobs: int | None,
    prompt_logprobs: int | None,
    vocab_size: int,
    defaults: GenerationDefaults,
) -> SamplingParams:
    """Parameters from the fields that all bodies share; None means the model's default, else the API's.

    Raises:
        ApiError: 400 for a token id outside the vocabulary.
    """
    if body.stream_options is not None and not body.stream:
        raise bad_request(
            "`stream_options` is only allowed with `stream: true`.", param="stream_options"
        )
    for name, ids in (
        ("logit_bias", body.logit_bias or ()),
        ("stop_token_ids", body.stop_token_ids or ()),
        ("shown_control_ids", body.shown_control_ids or ()),
        ("logprob_token_ids", body.logprob_token_ids or ()),
    ):
        outside = next((one for one in ids if one >= vocab_size), None)
        if outside is not None:
            raise bad_request(
                f"`{name}` has token id {outside}, outside the vocabulary of {vocab_size}.",
                param=name,
            )
    given = {name: getattr(body, name) for name in _FIELDS if getattr(body, name) is not None}
    if "top_k" in given:
        given["top_k"] = max(0, given["top_k"])  # -1 is another spelling of "all"
    if "dry_sequence_breakers" in given:
        given["dry_sequence_breakers"] = tuple(given["dry_sequence_breakers"])
    params = SamplingParams(
        **given,
        logit_bias=tuple((body.logit_bias or {}).items()),
        seed=seed_from(body.seed),
        logprobs=logprobs,
        logprob_token_ids=tuple(body.logprob_token_ids or ()),
        prompt_logprobs=prompt_logprobs,
        max_tokens=None if body.token_limit == NO_LIMIT else body.token_limit,
        stop=tuple(body.stop or ()),
        stop_token_ids=tuple(body.stop_token_ids or ()),
        ignore_eos=bool(body.ignore_eos),
        include_stop=bool(body.include_stop_str_in_output),
        shown_control_ids=frozenset(body.shown_control_ids or ()),
        grammar=grammar_of(body),
    )
    return SamplingChoice(params, frozenset(given)).for_model(defaults)
