"""`WeightSaver`: writes a loaded model's packed weights to the weight cache in the background.

The copy is made by a thread of the lowest priority in the core, which holds neither the GIL nor a lock: a
step is not delayed by it. The thread here only waits for it.
"""

import logging
import threading
from typing import TYPE_CHECKING, Self

from engine.executors import weight_cache
from engine.executors.weight_cache import WeightCache

if TYPE_CHECKING:
    from engine._core import NativeExecutor, PackedSaving

_log = logging.getLogger(__name__)

CLOSE_S = 5.0
"""How long closing waits for the file, in seconds, for commands that end with their first answer."""


class WeightSaver:
    """Saves the packed weights of one loaded model, once."""

    def __init__(self, saving: "PackedSaving", cache: WeightCache) -> None:
        """Start to save them."""
        self._saving = saving
        self._cache = cache
        # Not a daemon: at its end the interpreter waits until the core's thread has closed its file.
        self._thread = threading.Thread(target=self._save, name="pravaha-save")
        self._thread.start()

    @classmethod
    def after_loading(cls, core: "NativeExecutor", cache: WeightCache) -> Self | None:
        """Log what was found in the cache; save the weights if they should be there and are not."""
        facts = core.info
        match facts["packed"]:
            case "mapped":
                _log.info("The packed weights are mapped from %s.", facts["packed_path"])
            case "unusable":
                _log.warning(
                    "The packed weights at %s cannot be used, so the model was packed again: %s.",
                    facts["packed_path"],
                    facts["packed_reason"],
                )
        saving = core.packed_saving()
        if saving is None and facts["packed"] in ("missing", "unusable"):
            _log.info("The packed weights are kept in %s.", facts["packed_path"])
        if saving is None or saving.file_bytes < weight_cache.MIN_BYTES:
            return None
        return cls(saving, cache)

    def close(self, wait_s: float = CLOSE_S) -> None:
        """Wait until the weights are saved, for at most `wait_s`, then give up. Idempotent."""
        self._thread.join(wait_s)
        if self._thread.is_alive():
            self._saving.cancel()

    def _save(self) -> None:
        saving = self._saving
        try:
            if not self._cache.make_room(saving.path, saving.file_bytes):
                return
            outcome = saving.save()
        except OSError as error:
            _log.warning("The packed weights could not be kept in %s: %s.", saving.path, error)
            return
        if outcome == "done":
            _log.info("The packed weights are kept in %s.", saving.path)
