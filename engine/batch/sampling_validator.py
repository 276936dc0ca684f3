"""`SamplingValidator`: validates sampling parameters and packs them for the executor.

Sampling itself happens inside the executor; `engine.executors.reference_sampler` is its oracle.
"""

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from engine.api.errors import InvalidRequest
from engine.api.request import MAX_STOP_STRINGS, MAX_STOP_TOKEN_IDS, SamplingParams
from engine.executors.base import MAX_LOGPROB_TOKEN_IDS, MAX_TOP_LOGPROBS, SAMPLING_DTYPE

MAX_DRY_MULTIPLIER = 100.0
MAX_DRY_BASE = 100.0
MAX_BREAKERS = 16
MAX_BREAKER_CHARS = 40
_MAX_BIAS = 100.0
_MAX_PENALTY = 2.0
_MIN_TOP_P = 1e-30  # far above float32's subnormal numbers, which a processor may flush to 0
_MAX_REPETITION_PENALTY = 1000.0  # logits times it, over the lowest temperature, fit float32
_MAX_TEMPERATURE = 1e30
_INT32_MAX = 2**31 - 1
_GREEDY_BELOW = 1e-5  # dividing float32 logits by less could overflow; sampling is greedy anyway


class SamplingValidator:
    """Validates and packs the sampling parameters of one model's requests."""

    def __init__(self, vocab_size: int) -> None:
        self._vocab_size = vocab_size

    def validate(self, params: SamplingParams) -> None:
        """Check every field against the ranges of `SamplingParams`.

        Raises:
            InvalidRequest: naming the field.
        """
        _number("temperature", params.temperature, low=0.0, high=_MAX_TEMPERATURE)
        _number("top_p", params.top_p, low=_MIN_TOP_P, high=1.0)
        _number("min_p", params.min_p, low=0.0, high=1.0)
        _number(
            "repetition_penalty",
            params.repetition_penalty,
            low=1 / _MAX_REPETITION_PENALTY,
            high=_MAX_REPETITION_PENALTY,
        )
        _number("presence_penalty", params.presence_penalty, low=-_MAX_PENALTY, high=_MAX_PENALTY)
        _number("frequency_penalty", params.frequency_penalty, low=-_MAX_PENALTY, high=_MAX_PENALTY)
        _integer("top_k", params.top_k, low=0, high=_INT32_MAX)
        if params.seed is not None:
            _integer("seed", params.seed, low=0, high=2**64 - 1)
        if params.logprobs is not None:
            _integer("logprobs", params.logprobs, low=0, high=MAX_TOP_LOGPROBS)
        if params.prompt_logprobs is not None:
            _integer("prompt_logprobs", params.prompt_logprobs, low=0, high=MAX_TOP_LOGPROBS)
        if params.max_tokens is not None:
            _integer("max_tokens", params.max_tokens, low=0)
        self._validate_dry(params)
        self._validate_bias(params)
        self._validate_logprob_ids(params)
        self._validate_stops(params)
        if params.grammar is not None and params.ignore_eos:
            raise InvalidRequest(
                "ignore_eos cannot be combined with a grammar, which decides where the answer ends.",
                param="ignore_eos",
            )

    def _validate_dry(self, params: SamplingParams) -> None:
        _number("dry_multiplier", params.dry_multiplier, low=0.0, high=MAX_DRY_MULTIPLIER)
        _number("dry_base", params.dry_base, low=1.0, high=MAX_DRY_BASE)
        _integer("dry_allowed_length", params.dry_allowed_length, low=0, high=_INT32_MAX)
        _integer("dry_penalty_last_n", params.dry_penalty_last_n, low=-1, high=_INT32_MAX)
        breakers = params.dry_sequence_breakers
        if len(breakers) > MAX_BREAKERS:
            raise InvalidRequest(
                f"dry_sequence_breakers holds {len(breakers)} strings; at most {MAX_BREAKERS} are "
                "allowed.",
                param="dry_sequence_breakers",
            )
        for breaker in breakers:
            if not isinstance(breaker, str) or not 0 < len(breaker) <= MAX_BREAKER_CHARS:
                raise InvalidRequest(
                    f"dry_sequence_breakers must hold strings of 1 to {MAX_BREAKER_CHARS} "
                    "characters.",
                    param="dry_sequence_breakers",
                )

    def _validate_bias(self, params: SamplingParams) -> None:
        for token, bias in params.logit_bias:
            self._validate_token("logit_bias", token)
            _number("logit_bias", bias, low=-_MAX_BIAS, high=_MAX_BIAS)
        if len({token for token, _ in params.logit_bias}) < len(params.logit_bias):
            raise InvalidRequest("logit_bias names a token id twice.", param="logit_bias")

    def _validate_logprob_ids(self, params: SamplingParams) -> None:
        ids = params.logprob_token_ids
        if len(ids) > MAX_LOGPROB_TOKEN_IDS:
            raise InvalidRequest(
                f"logprob_token_ids holds {len(ids)} ids; at most {MAX_LOGPROB_TOKEN_IDS} are allowed.",
                param="logprob_token_ids",
            )
        for token in ids:
            self._validate_token("logprob_token_ids", token)

    def _validate_stops(self, params: SamplingParams) -> None:
        if len(params.stop) > MAX_STOP_STRINGS:
            raise InvalidRequest(
                f"stop holds {len(params.stop)} strings; at most {MAX_STOP_STRINGS} are allowed.",
                param="stop",
            )
        for stop in params.stop:
            if not isinstance(stop, str) or not stop:
                raise InvalidRequest("stop must hold non-empty strings.", param="stop")
        if len(params.stop_token_ids) > MAX_STOP_TOKEN_IDS:
            raise InvalidRequest(
                f"stop_token_ids holds {len(params.stop_token_ids)} ids; at most "
                f"{MAX_STOP_TOKEN_IDS} are allowed.",
                param="stop_token_ids",
            )
        for token in params.stop_token_ids:
            self._validate_token("stop_token_ids", token)

    def _validate_token(self, name: str, token: int) -> None:
        _integer(name, token)
        if not 0 <= token < self._vocab_size:
            raise InvalidRequest(
                f"{name} names token id {token}, but the vocabulary ends at "
                f"{self._vocab_size - 1}.",
                param=name,
            )

    @staticmethod
    def pack(params: SamplingParams, seed: int) -> NDArray[np.void]:
        """One record of `SAMPLING_DTYPE`, a 0-d array, of validated parameters."""
        record = np.zeros((), SAMPLING_DTYPE)
        greedy = params.temperature < _GREEDY_BELOW
        record["temperature"] = 0.0 if greedy else params.temperature
        record["top_p"] = params.top_p
        record["min_p"] = params.min_p
        record["repetition_penalty"] = params.repetition_penalty
        record["presence_penalty"] = params.presence_penalty
        record["frequency_penalty"] = params.frequency_penalty
        record["dry_multiplier"] = params.dry_multiplier if params.dry_penalty_last_n else 0.0
        record["dry_base"] = params.dry_base
        record["dry_allowed_length"] = params.dry_allowed_length
        record["dry_penalty_last_n"] = params.dry_penalty_last_n
        record["top_k"] = params.top_k
        record["num_logprobs"] = -1 if params.logprobs is None else params.logprobs
        record["seed"] = seed
        return record

    @staticmethod
    def pack_bias(params: SamplingParams) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Biased token ids, ascending, and their biases: [B] int32 and float32."""
        pairs = sorted(params.logit_bias)
        ids = np.array([token for token, _ in pairs], np.int32)
        return ids, np.array([bias for _, bias in pairs], np.float32)

    @staticmethod
    def stop_ids(params: SamplingParams, eos_ids: Iterable[int]) -> tuple[int, ...]:
        """Stop token ids, ascending: the request's own and, unless ignored, the model's."""
        model = () if params.ignore_eos else eos_ids
        return tuple(sorted({*params.stop_token_ids, *model}))


def _number(name: str, value: float, *, low: float, high: float) -> None:
    """Raise `InvalidRequest` unless the value is a finite number in [low, high]."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InvalidRequest(f"{name} must be a number, not {_shown(value)}.", param=name)
    if isinstance(value, float) and not math.isfinite(value):
        raise InvalidRequest(f"{name} must be finite, not {value}.", param=name)
    if not low <= value <= high:
        raise InvalidRequest(f"{name} must be {_range(low, high)}, not {value}.", param=name)


def _integer(name: str, value: int, *, low: float = -math.inf, high: float = math.inf) -> None:
    """Raise `InvalidRequest` unless the value is an integer in [low, high]."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidRequest(f"{name} must be an integer, not {_shown(value)}.", param=name)
    if not low <= value <= high:
        raise InvalidRequest(f"{name} must be {_range(low, high)}, not {value}.", param=name)


def _range(low: float, high: float) -> str:
    if high == math.inf:
        return f"at least {low:g}"
    return f"between {low:g} and {high:g}"


def _shown(value: object) -> str:
    return f"{type(value).__name__} {value!r:.40}"
