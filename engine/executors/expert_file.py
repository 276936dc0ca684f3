"""The file of a model with experts: its weights are packed into the weight cache and mapped from there.

A token uses few of the experts, and pages of the others need not be in memory: the system reads them when
they are first chosen, and drops them when memory is short. So such a model may be larger than memory. It is
packed in memory only if it is small, or fits there and cannot be kept.
"""

from collections.abc import Sequence
from pathlib import Path

from engine.api.config import EngineConfig
from engine.api.errors import ModelError
from engine.executors import weight_cache
from engine.executors.weight_cache import PackedLocation, WeightCache, open_weight_cache
from engine.models.spec import ModelSpec

_UNKNOWN = bytes(32)
"""The identity of files that changed just now: the size of their packed weights does not depend on it."""


def shortage(spec: ModelSpec, paths: Sequence[Path], config: EngineConfig) -> str:
    """Why a model's experts cannot be read from the weight cache, and what to do; empty if they can.

    Args:
        spec: the model's shapes.
        paths: its weight files.
        config: weight mode and weight cache.

    Raises:
        ValueError: files or spec cannot be used.
    """
    cache = open_weight_cache(config)
    if cache is None:
        return "the weight cache is off: set --weight-cache-bytes"
    location = cache.location(config.model, paths) or (cache.folder, _UNKNOWN, "")
    file, size, found = _find(spec, paths, config, location)
    return "" if found else cache.shortage(file, size)


def make_room(
    spec: ModelSpec,
    paths: Sequence[Path],
    config: EngineConfig,
    cache: WeightCache,
    location: PackedLocation,
) -> bool:
    """Whether the weights are in their file, or are to be packed into it, for which room is made.

    Args:
        spec: the shapes of a model with experts.
        paths: its weight files.
        config: weight mode, and whether the model needs the weight cache.
        cache: the weight cache.
        location: of the model in it.

    Raises:
        ModelError: the model needs the weight cache and cannot be kept there.
        ValueError: files or spec cannot be used.
    """
    file, size, found = _find(spec, paths, config, location)
    if found:
        return True
    if not config.needs_weight_cache:
        return size >= weight_cache.MIN_BYTES and cache.make_room(file, size)
    if reason := cache.shortage(file, size):
        raise ModelError(
            f"{config.name} is larger than memory, and its experts cannot be read from disk: {reason}."
        )
    return cache.make_room(file, size)


def _find(
    spec: ModelSpec, paths: Sequence[Path], config: EngineConfig, location: PackedLocation
) -> tuple[Path, int, bool]:
    """The file, its bytes, and whether it is there."""
    from engine import _core

    found = _core.find_packed(
        spec.to_json(), list(paths), weights=config.weights, packed_weights=location
    )
    return found["path"], found["file_bytes"], found["found"]
