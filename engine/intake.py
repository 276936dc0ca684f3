"""Taking a request in: everything that can be checked and prepared without the engine's thread."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from engine.errors import InvalidRequest
from engine.loading import Opened
from engine.mailbox import Mailbox
from engine.pipeline.decoder import Decoder
from engine.pipeline.grammar.compiler import CompiledGrammar
from engine.pipeline.sequence import Sequence
from engine.request import Request


def take_in(
    request: Request,
    opened: Opened,
    *,
    now: float,
    draw_seed: Callable[[], int],
    parent: Sequence | None = None,
) -> tuple[Sequence, Decoder]:
    """Check a request and derive from it what the scheduler needs.

    Args:
        request: what is asked.
        opened: the model it is asked of.
        now: the instant of queueing.
        draw_seed: called when the request brings no seed.
        parent: what the request is a fork of; its first tokens are the request's prompt.

    Returns:
        The sequence, and the answer's decoder: the sequence's own if stop strings make the engine's
        thread decode, else for the reader.

    Raises:
        InvalidRequest: a parameter out of range, or a prompt that cannot be one.
    """
    params, tokenizer, sampler = request.sampling, opened.model.tokenizer, opened.sampler
    sampler.validate(params)
    prompt = prompt_array(request.prompt_ids, opened)
    limit = opened.max_model_len
    if params.max_tokens is not None:
        limit = min(limit, len(prompt) + params.max_tokens)
    stop_ids = sampler.stop_ids(params, tokenizer.eos_ids)
    answer = len(prompt) if parent is None else min(parent.penalty_start, len(prompt))
    decoder = Decoder(
        tokenizer.stream(after=int(prompt[answer - 1])),
        stop_ids=frozenset(stop_ids),
        stops=params.stop,
        include_stop=params.include_stop,
    )
    if answer < len(prompt):
        decoder.resume_after(prompt[answer:].tolist())
    bias_ids, bias_values = sampler.pack_bias(params)
    sequence = Sequence(
        request=request,
        mailbox=Mailbox(num_logprobs=params.logprobs, queued=now),
        arrival=0,
        tokens=prompt,
        num_prompt=len(prompt),
        penalty_start=answer,
        max_total=limit,
        stop_ids=stop_ids,
        sampling=sampler.pack(params, draw_seed() if params.seed is None else params.seed),
        bias_ids=bias_ids,
        bias_values=bias_values,
        queued_at=now,
        decoder=decoder if params.stop else None,
        donor=parent,
        donor_tokens=0 if parent is None else len(prompt),
    )
    return sequence, decoder


def follow_grammar(sequence: Sequence, compiled: CompiledGrammar) -> None:
    """Give a sequence that waits for its grammar the matcher of its answer.

    A fork that keeps its parent's grammar goes on in it, so the matcher sees the parent's answer
    first; one that brings another grammar begins it where it was forked.

    Raises:
        InvalidRequest: the grammar allows no such beginning.
    """
    matcher = compiled.matcher()
    parent = sequence.donor
    if parent is not None and parent.request.sampling.grammar == compiled.grammar:
        begun = sequence.tokens[sequence.penalty_start :].tolist()
        if not matcher.consume(begun):
            raise InvalidRequest(
                "The grammar does not allow the tokens that the fork keeps.", param="grammar"
            )
    sequence.matcher = matcher


def prompt_array(prompt_ids: tuple[int, ...], opened: Opened) -> NDArray[np.int32]:
    """The prompt as [n] int32, if it is one.

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
    if count >= opened.max_model_len:
        raise InvalidRequest(
            f"The prompt has {count} tokens; the context holds {opened.max_model_len}, of which "
            "the answer needs at least one.",
            param="prompt",
        )
    cache = opened.kv_cache
    if cache.blocks_for(count) > cache.num_blocks:
        raise InvalidRequest(
            f"The prompt has {count} tokens and the KV pool holds {cache.capacity_tokens}: give "
            "it more memory (kv_cache_bytes) or shorten the prompt.",
            param="prompt",
        )
    return prompt.astype(np.int32)
