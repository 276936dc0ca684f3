"""Refuses settings that this machine cannot meet, before anything is loaded."""

import os

from app.settings.errors import ConfigurationError
from app.settings.settings import Settings
from engine.memory.host import available_memory

_GIB = 2**30


def check_machine(settings: Settings) -> None:
    """Compare the settings with the machine's processors and free memory.

    Raises:
        ConfigurationError: one sentence with the flag and the machine's figure.
    """
    processors = os.cpu_count() or 1
    if settings.threads is not None and settings.threads > processors:
        raise ConfigurationError(
            f"--threads {settings.threads} is more than the {processors} processors of this machine."
        )
    # The KV cache of a GPU lies in the GPU's memory, which is known only after it was opened.
    if settings.kv_cache is None or settings.device == "cuda" or settings.executor == "torch":
        return
    try:
        free = available_memory()
    except OSError:  # not Linux
        return
    if settings.kv_cache > free:
        raise ConfigurationError(
            f"--kv-cache asks for {settings.kv_cache / _GIB:,.1f} GiB, but this machine has "
            f"{free / _GIB:,.1f} GiB of free memory."
        )
