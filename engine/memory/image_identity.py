"""`identity_tokens`: what identifies blocks with images in the prefix cache and the swap tier.

All tokens of an image have the same ids, so the ids of a block do not tell one image from another. The
tokens of every block that overlaps an image are combined with a mask that is derived from the image's digest
and its place; the results are negative, so none is a token id. A block of 32 tokens has 992 bits
of it. Blocks before the first image keep their ids and are shared with any other request; blocks after one
differ by their parents.

Cost: one hash per image and a few numpy expressions; nothing for prompts without images.
"""

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from engine.api.image import PlacedImage

IN_IMAGE = -1
"""Token id shown for the tokens of a cached block with an image, whose ids are not known any more."""
_SIGN = np.int32(-(2**31))


def identity_tokens(
    tokens: NDArray[np.int32], images: Sequence[PlacedImage], block_size: int
) -> NDArray[np.int32]:
    """[n] int32: the tokens, changed in blocks that overlap an image; `tokens` itself without images.

    The result for the first m tokens is the first m of the result, for every m.
    """
    if not images:
        return tokens
    changed = tokens.copy()
    for placed in images:
        first = placed.start // block_size * block_size
        end = -(-(placed.start + placed.tokens) // block_size) * block_size
        last = min(end, len(tokens))
        if last > first:
            place = (placed.start - first).to_bytes(8) + placed.tokens.to_bytes(8)
            mask = hashlib.shake_128(placed.image.digest + place).digest(4 * (end - first))
            changed[first:last] ^= np.frombuffer(mask, "<i4")[: last - first]
            changed[first:last] |= _SIGN
    return changed


def common_images_until(one: Sequence[PlacedImage], other: Sequence[PlacedImage]) -> int:
    """The first token of the first image that two prompts do not have in common; 2**31 - 1 if none."""
    for mine, its in zip(one, other, strict=False):
        if mine != its:
            return min(mine.start, its.start)
    shorter = min(len(one), len(other))
    later = (*one[shorter:], *other[shorter:])
    return later[0].start if later else 2**31 - 1
