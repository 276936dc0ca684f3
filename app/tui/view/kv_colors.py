"""What a colour of the KV map means: the state of a block, its request, age, fill or reference count.

A block has a *code*, a small integer, and a code has a colour. Codes below `HUE_0` are `Cell`s and mean the
state in every mode; above them lie the hues of requests and the steps of a scale. Of several blocks in a cell
the greatest code is shown.
"""

import zlib
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from engine.api.snapshot import BlockMap, BlockState

HUES = 8
STEPS = 5
HUE_0 = 16
"""Code of the first hue."""
STEP_0 = 32
"""Code of the lowest step of a scale."""

AGE_STEPS_S = (600.0, 60.0, 10.0, 1.0)
"""A block last used longer ago than the first is at the lowest step, and so on; one in use at the highest."""


class ColorMode(StrEnum):
    """What the colours of the map mean; the key cycles through them in this order."""

    STATE = "state"
    REQUEST = "request"
    AGE = "age"
    FILL = "fill"
    REFCOUNT = "refcount"


SCALES = {
    ColorMode.AGE: ("over 10 m", "10 m", "1 m", "10 s", "in use"),
    ColorMode.FILL: ("to 20 %", "40 %", "60 %", "80 %", "full"),
    ColorMode.REFCOUNT: ("0", "1", "2", "3–4", "5+"),
}
"""Words for the steps of each scale, lowest first."""


def next_mode(mode: ColorMode) -> ColorMode:
    """The mode after this one, in a circle."""
    modes = list(ColorMode)
    return modes[(modes.index(mode) + 1) % len(modes)]


def hue_of(request_id: str) -> int:
    """The hue of a request, `[0, HUES)`: the same in the map, in lists and after a restart."""
    return zlib.crc32(request_id.encode()) % HUES


def mode_codes(
    mode: ColorMode, blocks: BlockMap, *, block_size: int, now: float
) -> NDArray[np.uint8] | None:
    """[blocks] codes of every block that is not free, or None in the mode that shows states.

    Args:
        mode: what colours mean.
        blocks: the map.
        block_size: tokens in a block.
        now: the current instant, on the clock of `BlockMap.last_used`.
    """
    match mode:
        case ColorMode.STATE:
            return None
        case ColorMode.REQUEST:
            hues = np.array([HUE_0 + hue_of(one) for one in blocks.owners] or [0], np.uint8)
            return np.where(blocks.owner >= 0, hues[blocks.owner], 0).astype(np.uint8)
        case ColorMode.AGE:
            ages = np.where(np.isnan(blocks.last_used), 0.0, now - blocks.last_used)
            steps = np.searchsorted(np.array(AGE_STEPS_S[::-1]), ages, side="left")
            in_use = blocks.state == BlockState.ACTIVE
            return _steps(np.where(in_use, STEPS - 1, STEPS - 1 - steps))
        case ColorMode.FILL:
            full = max(1, block_size)
            return _steps((blocks.fill.astype(np.int32) * STEPS - 1) // full)
        case ColorMode.REFCOUNT:
            return _steps(np.searchsorted(np.array([1, 2, 3, 5]), blocks.refcount, side="right"))


def _steps(steps: NDArray[np.integer]) -> NDArray[np.uint8]:
    return np.asarray(STEP_0 + np.clip(steps, 0, STEPS - 1), np.uint8)
