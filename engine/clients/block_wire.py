"""`BlockMap` as compact JSON: the first answer holds every block, later ones only what changed.

Arrays are base64 of little-endian values. `owner` and `first_token` are not sent: they follow from the
block tables, of which only the ends that differ are sent.
"""

import base64
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.api.snapshot import BlockMap
from engine.clients.http_wire import WireError

_COLUMNS: dict[str, np.dtype[Any]] = {
    "state": np.dtype("u1"),
    "refcount": np.dtype("<u2"),
    "fill": np.dtype("u1"),
    "pinned": np.dtype("?"),
    "last_used": np.dtype("<f8"),
}


def block_fields(new: BlockMap, base: BlockMap | None, *, block_size: int) -> dict[str, Any]:
    """The JSON object of a map, relative to `base` if that is given and of the same pool."""
    if base is not None and len(base.state) != len(new.state):
        base = None
    changed = _changed(new, base)
    held, tables = _tables(new, base)
    return {
        "epoch": new.epoch,
        "base": None if base is None else base.epoch,
        "num_blocks": len(new.state),
        "block_size": block_size,
        "changed": _encode(changed.astype("<i4")),
        **{
            name: _encode(getattr(new, name)[changed].astype(dtype))
            for name, dtype in _COLUMNS.items()
        },
        "tables": tables,
        "held": _encode(held.astype("<i4")),
        "checkpoints": _encode(new.checkpoints.astype("<i4")),
    }


def _changed(new: BlockMap, base: BlockMap | None) -> NDArray[np.intp]:
    if base is None:
        return np.arange(len(new.state))
    differs = np.zeros(len(new.state), np.bool_)
    for name in _COLUMNS:
        before, after = getattr(base, name), getattr(new, name)
        if name == "last_used":  # NaN equals NaN here
            before, after = before.view(np.int64), after.view(np.int64)
        differs |= before != after
    return np.flatnonzero(differs)


def _tables(
    new: BlockMap, base: BlockMap | None
) -> tuple[NDArray[np.int32], list[tuple[str, int, int]]]:
    """The blocks to send; per owner its id, how many blocks of its old table stay, how many follow."""
    ends: list[NDArray[np.int32]] = []
    tables: list[tuple[str, int, int]] = []
    for request_id, mine in _by_owner(new):
        kept = 0
        if base is not None:
            before = base.blocks_of(request_id)
            both = min(len(before), len(mine))
            differs = np.flatnonzero(before[:both] != mine[:both])
            kept = int(differs[0]) if differs.size else both
        ends.append(mine[kept:])
        tables.append((request_id, kept, len(mine) - kept))
    return np.concatenate(ends) if ends else np.zeros(0, np.int32), tables


def _by_owner(blocks: BlockMap) -> list[tuple[str, NDArray[np.int32]]]:
    """Each owner with its blocks, in the map's order."""
    counts = np.bincount(blocks.held_by, minlength=len(blocks.owners))
    parts = np.split(blocks.held_blocks, np.cumsum(counts)[:-1]) if len(counts) else []
    return list(zip(blocks.owners, parts, strict=True))


def block_map(data: Mapping[str, Any], base: BlockMap | None, *, shift: float) -> BlockMap:
    """The map that `block_fields` described.

    Args:
        data: the JSON object.
        base: the last map of this server; the object may be relative to it.
        shift: converts the server's instants to this process's clock.

    Raises:
        WireError: members are missing or invalid, or relative to another map.
    """
    try:
        total = int(data["num_blocks"])
        if data["base"] is None:
            base = None
        elif base is None or base.epoch != data["base"] or len(base.state) != total:
            raise ValueError("it is relative to another map")
        changed = _decode(data["changed"], np.dtype("<i4"))
        columns = {}
        for name, dtype in _COLUMNS.items():
            values = _decode(data[name], dtype)
            column = _native(np.zeros(total, dtype) if base is None else getattr(base, name))
            column[changed] = values + shift if name == "last_used" else values
            columns[name] = column
        held, tables = _decode(data["held"], np.dtype("<i4")).astype(np.int32), data["tables"]
        checkpoints = _decode(data.get("checkpoints", ""), np.dtype("<i4")).astype(np.int32)
        if checkpoints.size and not 0 <= checkpoints.min() <= checkpoints.max() < total:
            raise ValueError("it has a checkpoint of a block outside the pool")
        columns["checkpoints"] = checkpoints
        return _assemble(data["epoch"], columns, held, tables, base, int(data["block_size"]))
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise WireError(f"The server's block map is not in Pravāha's format ({error}).") from error


def _assemble(
    epoch: int,
    columns: dict[str, NDArray[Any]],
    held: NDArray[np.int32],
    tables: list[tuple[str, int, int]],
    base: BlockMap | None,
    block_size: int,
) -> BlockMap:
    total = len(columns["state"])
    owner, first_token = np.full(total, -1, np.int32), np.full(total, -1, np.int32)
    parts: list[NDArray[np.int32]] = []
    at = 0
    for index, (request_id, kept, count) in enumerate(tables):
        mine = held[at : at + count]
        at += count
        if base is not None and kept:
            mine = np.concatenate([base.blocks_of(request_id)[:kept], mine])
        # As in `engine.memory.block_map`: the earliest request is assigned last and stays.
        owner[mine] = index
        first_token[mine] = np.arange(len(mine), dtype=np.int32) * block_size
        parts.append(mine)
    return BlockMap(
        epoch=epoch,
        owner=owner,
        owners=tuple(request_id for request_id, _, _ in tables),
        first_token=first_token,
        held_blocks=np.concatenate(parts) if parts else np.zeros(0, np.int32),
        held_by=np.repeat(
            np.arange(len(parts), dtype=np.int32), [len(part) for part in parts]
        ).astype(np.int32),
        **columns,
    )


def _native(array: NDArray[Any]) -> NDArray[Any]:
    """A copy in this machine's byte order."""
    return array.astype(array.dtype.newbyteorder("="), copy=True)


def _encode(array: NDArray[Any]) -> str:
    return base64.b64encode(array.tobytes()).decode()


def _decode(text: str, dtype: np.dtype[Any]) -> NDArray[Any]:
    return np.frombuffer(base64.b64decode(text), dtype)
