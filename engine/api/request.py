"""Requests, sampling parameters and outputs. All are frozen and may be passed between threads.

Token ids are authoritative; text is derived from them.
"""

import uuid
from dataclasses import dataclass, field
from enum import StrEnum

from engine.api.grammar import Grammar
from engine.api.image import PlacedImage
from engine.api.reasoning import ReasoningControl
from engine.api.service_class import ServiceClass


class FinishReason(StrEnum):
    """Why a request finished. The values are those of the OpenAI API, plus `abort` and `error`.

    No engine ends a request with `content_filter`: a server does, whose guardrails ended the answer.
    """

    STOP = "stop"
    LENGTH = "length"
    CONTENT_FILTER = "content_filter"
    ABORT = "abort"
    ERROR = "error"


ENGINE_REASONS = (FinishReason.STOP, FinishReason.LENGTH, FinishReason.ABORT, FinishReason.ERROR)
"""The reasons of an engine's requests."""


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """Sampling parameters. `SamplingValidator.validate` rejects values outside the ranges given here.

    Attributes:
        temperature: in [0, 1e30]; 0 is greedy.
        top_k: keep the k most likely tokens; 0 keeps all.
        top_p: in [1e-30, 1]; keep the smallest set of most likely tokens whose probability reaches it.
        min_p: in [0, 1]; drop tokens below this fraction of the highest probability.
        repetition_penalty: in [0.001, 1000], over prompt and output (Keskar et al. 2019); 1 disables it.
        presence_penalty: in [-2, 2], once per distinct output token; 0 disables it.
        frequency_penalty: in [-2, 2], times the token's count in the output; 0 disables it.
        dry_multiplier: in [0, 100]; above 0, DRY ("don't repeat yourself", with llama.cpp's parameters)
            decreases the logit of a token that would continue a repetition of the last n tokens, prompt
            included, by `dry_multiplier * dry_base ** (n - dry_allowed_length)`, at most 1e6.
        dry_base: in [1, 100].
        dry_allowed_length: in [0, 2**31); shorter repetitions are not penalised.
        dry_penalty_last_n: in [-1, 2**31): repetitions are looked for in so many last tokens; -1 takes
            all, 0 disables DRY.
        dry_sequence_breakers: up to 16 strings of up to 40 characters, across which a repetition does
            not extend. A token that contains one is never penalised.
        logit_bias: (token id, bias in [-100, 100]) pairs added to the raw logits.
        seed: 0 ≤ seed < 2**64; None draws one at submission (reported in `RequestOutput.seed`).
        logprobs: None, or the number of alternatives (0–20) beside the sampled token. Values are
            log-softmax of the raw logits, before bias, penalties and temperature.
        logprob_token_ids: up to 64 token ids, whose log-probabilities are reported for every generated
            token, as raw as those of `logprobs` (vLLM has the same name). A decision between labels
            reads them with `max_tokens=1`: one forward pass, and no text is parsed. No draft tokens
            are proposed for such a request.
        prompt_logprobs: None, or the number of alternatives (0–20) beside each prompt token but the
            first. Those tokens are computed even where their KV is cached.
        max_tokens: maximum number of new tokens; None means up to the context length. 0 computes the
            prompt only, for its logprobs or for the prefix cache.
        stop: up to 64 strings; the text ends before the first one that occurs, in it or in the text with
            its control tokens spelled out.
        stop_token_ids: up to 24 ids that finish the answer, in addition to the model's.
        ignore_eos: do not finish at the model's end-of-sequence tokens.
        include_stop: keep the stop string in the text.
        shown_control_ids: control tokens that are part of the text, spelled out, although the text has no
            others: those that begin and end a call of a tool.
        grammar: the language of the answer, or None. The answer finishes with `stop` when the
            grammar allows no further token, or when the model samples an end token that the grammar
            allows. Cannot be combined with `ignore_eos`.
        reasoning: limits the reasoning before the answer, to which the grammar then applies; None if the
            answer is not divided. No draft tokens are proposed for such a request.
    """

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    dry_multiplier: float = 0.0
    dry_base: float = 1.75
    dry_allowed_length: int = 2
    dry_penalty_last_n: int = -1
    dry_sequence_breakers: tuple[str, ...] = ("\n", ":", '"', "*")
    logit_bias: tuple[tuple[int, float], ...] = ()
    seed: int | None = None
    logprobs: int | None = None
    logprob_token_ids: tuple[int, ...] = ()
    prompt_logprobs: int | None = None
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
    stop_token_ids: tuple[int, ...] = ()
    ignore_eos: bool = False
    include_stop: bool = False
    shown_control_ids: tuple[int, ...] = ()
    grammar: Grammar | None = None
    reasoning: ReasoningControl | None = None


def new_request_id() -> str:
    """A fresh opaque request id."""
    return f"req-{uuid.uuid4().hex}"


RANDOM_SEED = -1
"""The number by which callers ask for a new seed, as with other servers."""
MIN_SEED = -(2**63)


def seed_from(number: int | None) -> int | None:
    """The seed of `SamplingParams` that a caller's number means.

    `RANDOM_SEED` and None draw a new one for each request; any other number is a seed, a negative one
    modulo 2**64.
    """
    return None if number is None or number == RANDOM_SEED else number % 2**64


NO_LIMIT = -1
"""As `max_tokens`: no limit but the context, as with llama.cpp's and LM Studio's servers."""


def limit_from(number: int | None) -> int | None:
    """The `max_tokens` of `SamplingParams` that a caller's number means."""
    return None if number == NO_LIMIT else number


MAX_STOP_STRINGS = 64
MAX_STOP_TOKEN_IDS = 24
MAX_DEADLINE_MS = 86_400_000.0
MAX_PRIORITY = 2**31
MAX_CACHE_SALT = 1024


@dataclass(frozen=True, slots=True)
class Request:
    """A prompt to continue.

    Attributes:
        prompt_ids: token ids, at least one, special tokens included.
        sampling: sampling parameters.
        request_id: unique among live requests.
        priority: in [-2**31, 2**31), lower is scheduled first; used by the `priority` policy.
        service_class: `interactive`, `agent` or `batch`: while a prompt of a higher class is pending,
            lower classes are held, under every policy. Forks have their parent's.
        deadline_ms: > 0, at most a day: milliseconds from submission within which the first token is
            due; None sets no deadline. Used by the `edf` and `lrs` policies. A request that misses
            it continues.
        cache_salt: 1 to 1024 characters, or None. Requests with different salts, or with and without
            one, never reuse each other's KV blocks, neither in the pool nor in the swap tier: latencies
            do not tell a caller which prompts others sent. Forks have their parent's.
        continued_tokens: the last so many prompt tokens, not all, are the beginning of the answer (vLLM's
            `continue_final_message`). Penalties count them as output, a grammar starts before them, a
            stop string may begin in them, and a character that they leave incomplete is completed.
        session: names the conversation or run to which the request belongs, or None: what it computes is
            kept according to when the next request of the session is expected
            (`engine.memory.sessions`).
        may_be_held: whether it belongs to a run of an agent, and may wait for a limited time while older runs
            need the pool (`engine.scheduler.run_gate`). Only with a session.
        images: the images of the prompt in their order, as `place_images` places them; only for a model
            that sees images (`ModelInfo.sees_images`). Forks have those before the fork point.
    """

    prompt_ids: tuple[int, ...]
    sampling: SamplingParams = field(default_factory=SamplingParams)
    request_id: str = field(default_factory=new_request_id)
    priority: int = 0
    service_class: ServiceClass = "interactive"
    deadline_ms: float | None = None
    cache_salt: str | None = field(default=None, repr=False)
    continued_tokens: int = 0
    session: str | None = None
    may_be_held: bool = False
    images: tuple[PlacedImage, ...] = ()


@dataclass(frozen=True, slots=True)
class TopLogprob:
    """An alternative at one position: token id and raw log-probability."""

    token_id: int
    logprob: float


@dataclass(frozen=True, slots=True)
class PromptLogprobs:
    """Raw log-probabilities of the prompt tokens: entry `i` is that of token `i + 1`.

    The first token has none, as it has no context.

    Attributes:
        logprobs: one per token.
        ranks: rank of the token in the vocabulary, 1 for the most likely.
        top: alternatives, most likely first, as many as requested.
    """

    logprobs: tuple[float, ...]
    ranks: tuple[int, ...]
    top: tuple[tuple[TopLogprob, ...], ...]


@dataclass(frozen=True, slots=True)
class Timings:
    """Monotonic-clock times of one request, in seconds; None until they occur."""

    queued: float
    scheduled: float | None = None
    first_token: float | None = None
    last_token: float | None = None

    @property
    def ttft(self) -> float | None:
        """Time to first token, seconds from queueing."""
        return None if self.first_token is None else self.first_token - self.queued

    @property
    def prefill_s(self) -> float:
        """Seconds in which the prompt was read; 0 before the first token."""
        if self.scheduled is None or self.first_token is None:
            return 0.0
        return self.first_token - self.scheduled

    @property
    def decode_s(self) -> float:
        """Seconds from the first token to the last one; 0 before them."""
        if self.first_token is None or self.last_token is None:
            return 0.0
        return self.last_token - self.first_token


@dataclass(frozen=True, slots=True)
class TokenBatch:
    """The output of a request since its last drain. The last batch has `finish_reason` set.

    Attributes:
        token_ids: new ids, stop tokens included, so that the sequence can be continued exactly.
        logprobs: one per id if requested, else empty.
        top_logprobs: alternatives per id, most likely first, if requested, else empty.
        token_id_logprobs: per id, the log-probabilities of the request's `logprob_token_ids`, in their
            order; empty without any.
        text: new text: complete characters only, without stop strings and special tokens.
        finish_reason: None while running.
        error: one sentence when `finish_reason` is `error`.
        timings: the times recorded so far.
        seed: the seed in effect.
        cached_tokens: prompt tokens found in the prefix cache.
        drafted: one per id, whether it is an accepted draft token; empty if that is not reported.
        prompt_logprobs: in the first batch, if requested and the prompt was computed.
        stop_string: the one of the request's stop strings that ended the text; in the last batch.
    """

    request_id: str
    token_ids: tuple[int, ...]
    text: str
    timings: Timings
    seed: int
    logprobs: tuple[float, ...] = ()
    top_logprobs: tuple[tuple[TopLogprob, ...], ...] = ()
    token_id_logprobs: tuple[tuple[float, ...], ...] = ()
    finish_reason: FinishReason | None = None
    error: str | None = None
    cached_tokens: int = 0
    drafted: tuple[bool, ...] = ()
    prompt_logprobs: PromptLogprobs | None = None
    stop_string: str | None = None


@dataclass(frozen=True, slots=True)
class RequestOutput:
    """A finished request: all its batches joined. Fields as in `TokenBatch`."""

    request_id: str
    prompt_tokens: int
    token_ids: tuple[int, ...]
    text: str
    finish_reason: FinishReason
    timings: Timings
    seed: int
    logprobs: tuple[float, ...] = ()
    top_logprobs: tuple[tuple[TopLogprob, ...], ...] = ()
    token_id_logprobs: tuple[tuple[float, ...], ...] = ()
    error: str | None = None
    cached_tokens: int = 0
    drafted: tuple[bool, ...] = ()
    prompt_logprobs: PromptLogprobs | None = None
    stop_string: str | None = None
