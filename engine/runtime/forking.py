"""Forks: requests that go on where another one is, sharing its KV blocks.

A fork is an ordinary request whose prompt is its parent's tokens, with two additions. It names its
parent as *donor*, so that it starts with the parent's blocks (`engine.memory.reuse`); and what is
not KV begins where the parent's answer began: penalties count that answer, and the detokenizer knows
how it ended. Text is continued from token ids, never from re-tokenised text.

Nothing here waits for the engine's thread: the parent's tokens are read from its mailbox, and a
parent that ends meanwhile only means that its blocks are found in the prefix cache, or computed.
"""

import hashlib
from collections.abc import Callable
from collections.abc import Sequence as Ids
from dataclasses import replace

from engine.api.errors import InvalidRequest
from engine.api.fork_price import ForkPrice
from engine.api.request import Request, SamplingParams, new_request_id
from engine.batch.sequence import Sequence
from engine.scheduler.work_predictor import WorkPredictor

SamplingChange = Callable[[SamplingParams], SamplingParams]
"""From how the parent goes on to how its children do."""


def child_seed(seed: int, index: int) -> int:
    """The seed of a fork: a function of the parent's seed and the child's number, from 1.

    Children with their parent's own seed would all write the same text.
    """
    digest = hashlib.blake2b(f"{seed}:{index}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little")


def prompt_and_output_ids(parent: Sequence) -> tuple[int, ...]:
    """Prompt and answer of a request so far. Any thread."""
    return (*parent.request.prompt_ids, *parent.mailbox.peek().ids.tolist())


def child_request(
    parent: Sequence,
    tokens: Ids[int],
    *,
    number: int,
    sampling: SamplingParams | SamplingChange | None,
    request_id: str | None = None,
) -> Request:
    """The request that one child is.

    Args:
        parent: what is forked.
        tokens: the parent's first tokens, which the child continues.
        number: the child's number, counted from 1 over all forks of the parent.
        sampling: how the child goes on; None does as the parent, up to the parent's length, and a
            function changes that.
        request_id: the child's id; None makes one.
    """
    if not isinstance(sampling, SamplingParams):
        room = parent.max_total - len(tokens)
        # The prompt's logprobs are the parent's to report; having them would cost a prefill.
        parents = replace(parent.request.sampling, seed=None, max_tokens=room, prompt_logprobs=None)
        sampling = parents if sampling is None else sampling(parents)
    seed = int(parent.sampling["seed"]) if sampling.seed is None else sampling.seed
    return Request(
        prompt_ids=tuple(tokens),
        sampling=replace(sampling, seed=child_seed(seed, number)),
        request_id=request_id or new_request_id(),
        priority=parent.request.priority,
        deadline_ms=parent.request.deadline_ms,
    )


def fork_point(parent: Sequence, known: int, at: int | None) -> int:
    """How many of the parent's `known` tokens the children share.

    Raises:
        InvalidRequest: `at` is no number of tokens the parent has, or the parent is complete.
    """
    if at is None:
        at = known
    if isinstance(at, bool) or not isinstance(at, int) or not 1 <= at <= known:
        raise InvalidRequest(
            f"The request has {known} tokens and cannot be forked at token {at}.", param="at"
        )
    if at >= parent.max_total:
        raise InvalidRequest(
            f"The request is complete at its {known} tokens; fork it at an earlier one.", param="at"
        )
    return at


def price_of(
    tokens: int,
    cached_blocks: int,
    block_size: int,
    work: WorkPredictor,
    *,
    swapped_blocks: int = 0,
    swap_seconds: float | None = 0.0,
) -> ForkPrice:
    """The price of `tokens` tokens whose first blocks are cached.

    Args:
        tokens: how many there are.
        cached_blocks: whole blocks found in the pool, at most all of them.
        block_size: tokens in a block.
        work: predicts the seconds.
        swapped_blocks: whole blocks after those that the swap tier has; not the last token's.
        swap_seconds: what copying those takes, or None if that was never measured.
    """
    cached = (cached_blocks + swapped_blocks) * block_size
    whole = cached > 0 and cached >= tokens
    prefill = 1 if whole else tokens - cached
    seconds = work.prefill_seconds(prefill, cached=tokens - prefill)
    if seconds is not None and swapped_blocks:
        seconds = None if swap_seconds is None else seconds + swap_seconds
    return ForkPrice(prefill, int(whole), seconds, swapped_blocks)
