"""Forks: requests that continue another live request and share its KV blocks.

A fork is an ordinary request whose prompt is its parent's first tokens, with two additions. It names
its parent as *donor*, so that it starts with the parent's blocks (`engine.memory.reuse`). And its
penalties and detokenizer start where the parent's output starts, so that both include that output.
Text is continued from token ids, never re-tokenised.

Nothing here waits for the engine's thread: the parent's tokens are read from its mailbox. If the parent
finishes meanwhile, its blocks are found in the prefix cache or recomputed.
"""

import hashlib
from collections.abc import Callable
from collections.abc import Sequence as Ids
from dataclasses import replace

from engine.api.errors import InvalidRequest
from engine.api.fork_price import ForkPrice
from engine.api.image import PlacedImage
from engine.api.request import Request, SamplingParams, new_request_id
from engine.batch.sequence import Sequence
from engine.scheduler.work_predictor import WorkPredictor

SamplingChange = Callable[[SamplingParams], SamplingParams]
"""Maps the parent's sampling parameters to those of its children."""


def child_seed(seed: int, index: int) -> int:
    """The seed of a fork, derived from the parent's seed and the child's number, from 1.

    With the parent's own seed all children would generate the same text.
    """
    digest = hashlib.blake2b(f"{seed}:{index}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little")


def prompt_and_output_ids(parent: Sequence) -> tuple[int, ...]:
    """Prompt and output token ids of a request so far. Any thread."""
    return (*parent.request.prompt_ids, *parent.mailbox.peek().ids.tolist())


def child_request(
    parent: Sequence,
    tokens: Ids[int],
    *,
    number: int,
    sampling: SamplingParams | SamplingChange | None,
    request_id: str | None = None,
) -> Request:
    """The request of one child.

    Args:
        parent: the forked sequence.
        tokens: the parent's first tokens, the child's prompt.
        number: the child's number, counted from 1 over all forks of the parent.
        sampling: its sampling parameters; None uses the parent's, with its length limit, and a
            function modifies those.
        request_id: the child's id; None generates one.

    Raises:
        InvalidRequest: the tokens end inside an image.
    """
    if not isinstance(sampling, SamplingParams):
        room = parent.max_total - len(tokens)
        # Only the parent reports prompt logprobs; computing them again would need a full prefill.
        parents = replace(parent.request.sampling, seed=None, max_tokens=room, prompt_logprobs=None)
        sampling = parents if sampling is None else sampling(parents)
    seed = int(parent.sampling["seed"]) if sampling.seed is None else sampling.seed
    return Request(
        prompt_ids=tuple(tokens),
        sampling=replace(sampling, seed=child_seed(seed, number)),
        request_id=request_id or new_request_id(),
        priority=parent.request.priority,
        service_class=parent.request.service_class,
        deadline_ms=parent.request.deadline_ms,
        cache_salt=parent.request.cache_salt,
        images=_images_before(parent, len(tokens)),
    )


def _images_before(parent: Sequence, tokens: int) -> tuple[PlacedImage, ...]:
    """The parent's images in its first `tokens` tokens.

    Raises:
        InvalidRequest: an image would be cut in two.
    """
    images = tuple(one for one in parent.request.images if one.start < tokens)
    if images and (end := images[-1].start + images[-1].tokens) > tokens:
        raise InvalidRequest(
            f"Token {tokens} is inside an image: fork before its first token, {images[-1].start}, or "
            f"after its last, {end}.",
            param="at",
        )
    return images


def fork_point(parent: Sequence, num_tokens: int, at: int | None) -> int:
    """How many of the parent's `num_tokens` tokens the children share, all if `at` is None.

    Raises:
        InvalidRequest: `at` is not in [1, num_tokens], or no token may follow it.
    """
    if at is None:
        at = num_tokens
    if isinstance(at, bool) or not isinstance(at, int) or not 1 <= at <= num_tokens:
        raise InvalidRequest(
            f"The request has {num_tokens} tokens and cannot be forked at token {at}.", param="at"
        )
    if at >= parent.max_total:
        raise InvalidRequest(
            f"The request is complete at its {num_tokens} tokens; fork it at an earlier one.",
            param="at",
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
    state_bytes: int = 0,
) -> ForkPrice:
    """The price of a prompt whose first blocks are cached.

    Args:
        tokens: number of prompt tokens.
        cached_blocks: full blocks found in the pool, at most all of them.
        block_size: tokens per block.
        work: predicts the prefill time.
        swapped_blocks: full blocks after those found in the swap tier, without the last token's.
        swap_seconds: predicted time to copy those in; None if it was never measured.
        state_bytes: bytes of the recurrent state after the last of these blocks, which is copied; 0 for a
            model without recurrent layers.
    """
    cached = (cached_blocks + swapped_blocks) * block_size
    whole = cached > 0 and cached >= tokens
    prefill = 1 if whole else tokens - cached
    seconds = work.prefill_seconds(prefill, cached=tokens - prefill)
    if seconds is not None and swapped_blocks:
        seconds = None if swap_seconds is None else seconds + swap_seconds
    restored_bytes = state_bytes if cached else 0
    return ForkPrice(prefill, int(whole), seconds, swapped_blocks, restored_bytes)
