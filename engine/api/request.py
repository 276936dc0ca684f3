"""What a caller asks of the engine and what comes back. Frozen: safe to hand between threads.

Token ids are the truth; text is a view of them.
"""

import uuid
from dataclasses import dataclass, field
from enum import StrEnum

from engine.api.grammar import Grammar


class FinishReason(StrEnum):
    """Why a request ended. The values are those of the OpenAI API, plus `abort` and `error`."""

    STOP = "stop"
    LENGTH = "length"
    ABORT = "abort"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """How to choose tokens. `SamplingValidator.validate` refuses values outside the ranges given here.

    Attributes:
        temperature: ≥ 0; 0 is greedy.
        top_k: keep the k likeliest tokens; 0 keeps all.
        top_p: in (0, 1]; keep the smallest set whose probability reaches it.
        min_p: in [0, 1]; drop tokens below this share of the likeliest one's probability.
        repetition_penalty: > 0, over prompt and output (Keskar et al. 2019); 1 is off.
        presence_penalty: in [-2, 2], once per distinct output token; 0 is off.
        frequency_penalty: in [-2, 2], times the token's count in the output; 0 is off.
        logit_bias: (token id, bias in [-100, 100]) pairs added to raw logits.
        seed: 0 ≤ seed < 2**64; None draws one at submission (reported in `RequestOutput.seed`).
        logprobs: None for none, else how many alternatives (0–20) beside the sampled token's own.
            They are log-softmax of the raw logits, before bias, penalties and temperature.
        prompt_logprobs: None for none, else how many alternatives (0–20) beside the logprob of each
            of the prompt's own tokens but the first. Those tokens are computed for it even where
            their KV is cached.
        max_tokens: at most this many new tokens; None means up to the context's end. 0 computes the
            prompt, for its logprobs or for the cache, and writes nothing.
        stop: up to 16 strings; text is cut before the first that appears.
        stop_token_ids: up to 12 ids that end the answer, beside the model's own.
        ignore_eos: do not end at the model's end-of-sequence tokens.
        include_stop: keep the stop string in the text.
        grammar: the form the answer must have, or None. The answer ends, with `stop`, where the
            grammar allows nothing more, or where the model ends it and the grammar allows that;
            `ignore_eos` is refused beside it.
    """

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    logit_bias: tuple[tuple[int, float], ...] = ()
    seed: int | None = None
    logprobs: int | None = None
    prompt_logprobs: int | None = None
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
    stop_token_ids: tuple[int, ...] = ()
    ignore_eos: bool = False
    include_stop: bool = False
    grammar: Grammar | None = None


def new_request_id() -> str:
    """A fresh opaque request id."""
    return f"req-{uuid.uuid4().hex}"


MAX_DEADLINE_MS = 86_400_000.0
MAX_PRIORITY = 2**31


@dataclass(frozen=True, slots=True)
class Request:
    """One sequence to continue.

    Attributes:
        prompt_ids: token ids, at least one; special tokens already in place.
        sampling: how to choose the continuation.
        request_id: unique among live requests.
        priority: in [-2**31, 2**31), lower goes first; the `priority` policy reads it.
        deadline_ms: > 0, at most a day: how long after submission the first token is wanted, at the
            latest; None names no deadline. The `edf` and `lrs` policies read it. Nothing is cut
            short when it passes.
    """

    prompt_ids: tuple[int, ...]
    sampling: SamplingParams = field(default_factory=SamplingParams)
    request_id: str = field(default_factory=new_request_id)
    priority: int = 0
    deadline_ms: float | None = None


@dataclass(frozen=True, slots=True)
class TopLogprob:
    """One alternative at a position: token id and raw log-probability."""

    token_id: int
    logprob: float


@dataclass(frozen=True, slots=True)
class PromptLogprobs:
    """Raw log-probabilities of a prompt's own tokens: entry `i` is that of its token `i + 1`.

    The first token has none: nothing comes before it.

    Attributes:
        logprobs: one a token.
        ranks: 1 for the likeliest token of the vocabulary, and so on.
        top: alternatives, likeliest first, as many as were asked for.
    """

    logprobs: tuple[float, ...]
    ranks: tuple[int, ...]
    top: tuple[tuple[TopLogprob, ...], ...]


@dataclass(frozen=True, slots=True)
class Timings:
    """Monotonic-clock instants of one request, seconds; None until they happen."""

    queued: float
    scheduled: float | None = None
    first_token: float | None = None
    last_token: float | None = None

    @property
    def ttft(self) -> float | None:
        """Time to first token, seconds from queueing."""
        return None if self.first_token is None else self.first_token - self.queued


@dataclass(frozen=True, slots=True)
class TokenBatch:
    """Everything new since the last drain of a request. The last batch has `finish_reason` set.

    Attributes:
        token_ids: new ids, stop tokens included (so that a transcript can be continued exactly).
        logprobs: one per id when asked for, else empty.
        top_logprobs: alternatives per id, likeliest first, when asked for, else empty.
        text: new text: whole characters only, stop strings cut, special tokens skipped.
        finish_reason: None while running.
        error: one sentence when `finish_reason` is `error`.
        timings: as known so far.
        seed: the seed in effect.
        cached_tokens: prompt tokens that were found computed and not computed again.
        prompt_logprobs: in the first batch, if they were asked for and the prompt was computed.
    """

    request_id: str
    token_ids: tuple[int, ...]
    text: str
    timings: Timings
    seed: int
    logprobs: tuple[float, ...] = ()
    top_logprobs: tuple[tuple[TopLogprob, ...], ...] = ()
    finish_reason: FinishReason | None = None
    error: str | None = None
    cached_tokens: int = 0
    prompt_logprobs: PromptLogprobs | None = None


@dataclass(frozen=True, slots=True)
class RequestOutput:
    """A finished request: every batch of it, joined. Fields as in `TokenBatch`."""

    request_id: str
    prompt_tokens: int
    token_ids: tuple[int, ...]
    text: str
    finish_reason: FinishReason
    timings: Timings
    seed: int
    logprobs: tuple[float, ...] = ()
    top_logprobs: tuple[tuple[TopLogprob, ...], ...] = ()
    error: str | None = None
    cached_tokens: int = 0
    prompt_logprobs: PromptLogprobs | None = None
