"""What tells blocks with images apart, and what they share."""

from dataclasses import replace

import numpy as np
import pytest

from engine.api.image import Image, PlacedImage
from engine.memory.image_identity import common_images_until, identity_tokens

BLOCK = 8
TOKENS = np.arange(100, 164, dtype=np.int32)
RED, BLUE = Image(b"red", "image/png", 1, 1), Image(b"blue", "image/png", 1, 1)


def identity(*images, tokens=TOKENS):
    return identity_tokens(tokens, images, BLOCK)


def changed_blocks(one, other):
    return sorted({int(at) // BLOCK for at in np.flatnonzero(one != other)})


def test_tokens_without_images_are_unchanged():
    assert identity() is TOKENS


def test_only_blocks_with_the_image_are_changed_and_all_their_tokens():
    placed = PlacedImage(RED, 13, 12)  # tokens 13 to 24: blocks 1, 2 and 3
    found = identity(placed)
    assert changed_blocks(found, TOKENS) == [1, 2, 3]
    assert (found[8:32] < 0).all()
    assert (found[:8] == TOKENS[:8]).all()
    assert (found[32:] == TOKENS[32:]).all()


@pytest.mark.parametrize(
    "other",
    [PlacedImage(BLUE, 13, 12), PlacedImage(RED, 14, 12), PlacedImage(RED, 13, 11)],
)
def test_another_image_or_place_changes_every_block_of_it(other):
    """Also a block of which one token only is the image's: its text tells the images apart, too."""
    one, another = identity(PlacedImage(RED, 13, 12)), identity(other)
    assert changed_blocks(one, another) == [1, 2, 3]
    assert np.count_nonzero(one[8:32] != another[8:32]) == 24


def test_the_text_beside_an_image_counts():
    tokens = TOKENS.copy()
    tokens[9] += 1
    placed = PlacedImage(RED, 13, 12)
    assert changed_blocks(identity(placed), identity(placed, tokens=tokens)) == [1]


def test_a_later_image_leaves_the_earlier_blocks():
    first, second = PlacedImage(RED, 13, 12), PlacedImage(BLUE, 34, 5)
    assert changed_blocks(identity(first), identity(first, second)) == [4]


def test_images_in_one_block_both_count():
    first, second = PlacedImage(RED, 8, 2), PlacedImage(BLUE, 12, 2)
    both = identity(first, second)
    assert (both[8:16] != identity(first, replace(second, image=RED))[8:16]).any()
    assert (both[8:16] != identity(replace(first, image=BLUE), second)[8:16]).any()
    swapped = identity(replace(first, image=BLUE), replace(second, image=RED))
    assert (both[8:16] != swapped[8:16]).any()


@pytest.mark.parametrize("count", [0, 5, 8, 13, 14, 20, 25, 31, 32, 64])
def test_a_prefix_has_the_prefix_of_the_identity(count):
    placed = PlacedImage(RED, 13, 12), PlacedImage(BLUE, 30, 9)
    assert (identity(*placed, tokens=TOKENS[:count]) == identity(*placed)[:count]).all()


def test_what_two_prompts_with_images_have_in_common():
    first, second, third = PlacedImage(RED, 5, 4), PlacedImage(BLUE, 20, 4), PlacedImage(RED, 20, 4)
    assert common_images_until((), ()) == 2**31 - 1
    assert common_images_until((first,), (first,)) == 2**31 - 1
    assert common_images_until((first,), ()) == 5
    assert common_images_until((first, second), (first,)) == 20
    assert common_images_until((first, second), (first, third)) == 20
    assert common_images_until((first,), (PlacedImage(RED, 3, 4),)) == 3
