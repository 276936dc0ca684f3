"""`BlockHistory`: the last block maps that were sent, so that the next answer holds only what changed."""

from collections import deque

from engine.api.snapshot import BlockMap

MAX_MAPS = 4
"""Maps kept: readers that poll at the same rate ask for changes since one of the last few."""


class BlockHistory:
    """Block maps of one engine by epoch. Used on the event loop only."""

    def __init__(self) -> None:
        """No maps."""
        self._maps: deque[BlockMap] = deque(maxlen=MAX_MAPS)

    def base_for(self, new: BlockMap, since: int) -> BlockMap | None:
        """Keep `new`, and return the map of epoch `since` if it is kept."""
        base = next((one for one in self._maps if one.epoch == since), None)
        if all(one.epoch != new.epoch for one in self._maps):
            self._maps.append(new)
        return base
