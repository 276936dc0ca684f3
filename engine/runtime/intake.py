"""Request intake: validates a request and prepares its sequence, without the engine's thread."""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from engine.api.errors import ContextLengthExceeded, InvalidRequest, exceeding
from engine.api.request import (
    MAX_CACHE_SALT,
    MAX_DEADLINE_MS,
    MAX_PRIORITY,
    Request,
    SamplingParams,
)
from engine.api.service_class import SERVICE_CLASSES
from engine.batch.mailbox import Mailbox
from engine.batch.prompt_scores import PromptScores
from engine.batch.request_record import request_record
from engine.batch.sequence import Sequence
from engine.executors.image_placing import check_images
from engine.grammar.compiler import CompiledGrammar
from engine.grammar.matcher import Matcher, mask_words
from engine.grammar.reasoning_matcher import ReasoningMatcher
from engine.memory.kv_identity import cache_salt_digest
from engine.runtime.loading import Opened
from engine.text.detokenizer import Detokenizer


def make_sequence(
    request: Request,
    opened: Opened,
    *,
    now: float,
    draw_seed: Callable[[], int],
    parent: Sequence | None = None,
    choice_of: Sequence | None = None,
) -> tuple[Sequence, Detokenizer]:
    """Validate a request and create its sequence.

    Args:
        request: the request.
        opened: the model.
        now: the instant of queueing, monotonic seconds.
        draw_seed: called when the request has no seed.
        parent: for a fork, its parent; the prompt is the parent's first tokens.
        choice_of: a sequence of the same call; with equal prompts and `prompt_logprobs` the two share
            their prompt scores.

    Returns:
        The sequence and the detokenizer of its output. With stop strings the sequence itself owns the
        detokenizer and the engine's thread runs it; otherwise it is for the reader.

    Raises:
        InvalidRequest: a parameter out of range, or an invalid prompt.
    """
    params, tokenizer, sampling_validator = (
        request.sampling,
        opened.model.tokenizer,
        opened.sampling_validator,
    )
    sampling_validator.validate(params)
    deadline = _deadline(request, now)
    prompt = prompt_array(request.prompt_ids, opened, answer_room=int(params.max_tokens != 0))
    check_images(opened.model, request.prompt_ids, request.images)
    limit = opened.max_model_len
    if params.max_tokens is not None:
        limit = min(limit, len(prompt) + params.max_tokens)
    stop_ids = sampling_validator.stop_ids(params, tokenizer.eos_ids)
    answer = len(prompt) - _continued_tokens(request)
    if parent is not None:
        answer = min(parent.penalty_start, len(prompt))
    detokenizer = Detokenizer(
        tokenizer.incremental_detokenizer(
            after=int(prompt[answer - 1]), shown=frozenset(params.shown_control_ids)
        ),
        stop_ids=frozenset(stop_ids),
        stops=params.stop,
        include_stop=params.include_stop,
    )
    if answer < len(prompt):
        detokenizer.resume_after(prompt[answer:].tolist())
    bias_ids, bias_values = sampling_validator.pack_bias(params)
    sequence = Sequence(
        request=request,
        mailbox=Mailbox(
            num_logprobs=params.logprobs,
            queued=now,
            prompt_scores=_prompt_scores(request, choice_of),
        ),
        record=request_record(
            queued_at=now,
            priority=request.priority,
            service_class=_service_class(request),
            deadline=deadline,
            may_be_held=request.session is not None and request.may_be_held,
        ),
        tokens=prompt,
        num_prompt=len(prompt),
        penalty_start=answer,
        max_total=limit,
        stop_ids=stop_ids,
        cache_salt=_cache_salt(request),
        sampling=sampling_validator.pack(
            params, draw_seed() if params.seed is None else params.seed
        ),
        bias_ids=bias_ids,
        bias_values=bias_values,
        logprob_ids=np.array(params.logprob_token_ids, np.int32),
        breakers=opened.breakers.compile(params.dry_sequence_breakers)
        if params.dry_multiplier and params.dry_penalty_last_n
        else None,
        detokenizer=detokenizer if params.stop else None,
        donor=parent,
        donor_tokens=0 if parent is None else len(prompt),
    )
    return sequence, detokenizer


def attach_matcher(
    sequence: Sequence, compiled: CompiledGrammar | None, *, vocab_size: int
) -> None:
    """Set the matcher of a sequence's grammar and reasoning.

    The matcher first consumes the beginning of the answer: a continued answer's, or of a fork with its
    parent's grammar the parent's output. A fork with another grammar starts it at the fork point.

    Args:
        sequence: with a grammar, a control of its reasoning, or both.
        compiled: its grammar; None without one.
        vocab_size: number of logits.

    Raises:
        InvalidRequest: the grammar does not allow that beginning.
    """
    matcher: Matcher | ReasoningMatcher | None
    matcher = None if compiled is None else compiled.matcher()
    reasoning = sequence.request.sampling.reasoning
    if reasoning is not None:
        matcher = ReasoningMatcher(reasoning, matcher, mask_words=mask_words(vocab_size))
    if matcher is None:
        return
    parent = sequence.donor
    if parent is None or _same_form(parent.request.sampling, sequence.request.sampling):
        begun = sequence.tokens[sequence.penalty_start :].tolist()
        if not matcher.consume(begun):
            keeps = "that the fork keeps" if parent is not None else "that the answer begins with"
            raise InvalidRequest(f"The grammar does not allow the tokens {keeps}.", param="grammar")
    sequence.matcher = matcher


def _same_form(one: SamplingParams, other: SamplingParams) -> bool:
    return one.grammar == other.grammar and one.reasoning == other.reasoning


def _service_class(request: Request) -> int:
    """The index of the request's class in `SERVICE_CLASSES`.

    Raises:
        InvalidRequest: unknown class.
    """
    if request.service_class not in SERVICE_CLASSES:
        raise InvalidRequest(
            f"service_class is {request.service_class!r:.40}; use one of "
            f"{', '.join(SERVICE_CLASSES)}.",
            param="service_class",
        )
    return SERVICE_CLASSES.index(request.service_class)


def _cache_salt(request: Request) -> bytes:
    """The digest of the request's cache salt.

    Raises:
        InvalidRequest: not a string of a valid length.
    """
    salt = request.cache_salt
    if salt is not None and not (isinstance(salt, str) and 0 < len(salt) <= MAX_CACHE_SALT):
        raise InvalidRequest(
            f"cache_salt must be a string of 1 to {MAX_CACHE_SALT} characters.", param="cache_salt"
        )
    return cache_salt_digest(salt)


def _continued_tokens(request: Request) -> int:
    """How many of the last prompt tokens are the beginning of the answer.

    Raises:
        InvalidRequest: not a number of tokens, or all of the prompt.
    """
    count = request.continued_tokens
    if isinstance(count, bool) or not isinstance(count, int) or count < 0:
        raise InvalidRequest(
            f"continued_tokens is {count!r:.40}; it must be a number of tokens.",
            param="continued_tokens",
        )
    if 0 < count >= len(request.prompt_ids):
        raise InvalidRequest(
            f"continued_tokens is {count}, and the prompt has {len(request.prompt_ids)} tokens: at "
            "least one must precede the answer.",
            param="continued_tokens",
        )
    return count


def _prompt_scores(request: Request, choice_of: Sequence | None) -> PromptScores | None:
    """Where the prompt's logprobs are stored: with those of `choice_of` if they are the same."""
    top = request.sampling.prompt_logprobs
    if top is None:
        return None
    if choice_of is not None:
        other = choice_of.request
        if (other.sampling.prompt_logprobs, other.prompt_ids) == (top, request.prompt_ids):
            return choice_of.mailbox.prompt_scores
    return PromptScores(len(request.prompt_ids), top)


def _deadline(request: Request, now: float) -> float:
    """The instant by which the first token is due, inf without a deadline; also checks the priority.

    Raises:
        InvalidRequest: a priority or a deadline out of range.
    """
    priority, most = request.priority, MAX_PRIORITY
    whole = isinstance(priority, int) and not isinstance(priority, bool)
    if not whole or not -most <= priority < most:
        raise InvalidRequest(
            f"priority is {priority!r:.40}; it must be an integer from {-most} to {most - 1}.",
            param="priority",
        )
    allowed = request.deadline_ms
    if allowed is None:
        return math.inf
    number = isinstance(allowed, int | float) and not isinstance(allowed, bool)
    if not number or not 0 < allowed <= MAX_DEADLINE_MS:
        raise InvalidRequest(
            f"deadline_ms is {allowed!r:.40}; it must be above 0 and at most {MAX_DEADLINE_MS:.0f} "
            "milliseconds.",
            param="deadline_ms",
        )
    return now + allowed / 1000


def prompt_array(
    prompt_ids: tuple[int, ...], opened: Opened, *, answer_room: int = 1
) -> NDArray[np.int32]:
    """Validate a prompt and return it as [n] int32; `answer_room` tokens of context must remain.

    Raises:
        InvalidRequest: empty, not token ids of this model, or too long.
    """
    if not prompt_ids:
        raise InvalidRequest("The prompt is empty.", param="prompt")
    prompt = np.array(prompt_ids)
    if prompt.ndim != 1 or prompt.dtype.kind not in "iu":
        raise InvalidRequest("The prompt must be a list of integers.", param="prompt")
    vocab_size = opened.model.spec.vocab_size
    if prompt.min() < 0 or prompt.max() >= vocab_size:
        raise InvalidRequest(
            f"The prompt holds a token id outside the vocabulary of {vocab_size}.", param="prompt"
        )
    count = len(prompt)
    if count + answer_room > opened.max_model_len:
        raise ContextLengthExceeded(
            exceeding(count, opened.max_model_len - answer_room),
            opened.max_model_len,
            param="prompt",
            includes_answer=answer_room > 0,
        )
    cache = opened.kv_cache
    if cache.blocks_for(count) > cache.num_blocks:
        raise ContextLengthExceeded(
            exceeding(count, cache.capacity_tokens),
            cache.capacity_tokens,
            param="prompt",
            includes_answer=False,
            bound=f" here (the KV pool holds {cache.capacity_tokens})",
            advice=", or give the pool more memory (--kv-cache)",
        )
    return prompt.astype(np.int32)
