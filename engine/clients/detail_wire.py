"""Block details, the prefix tree and residency from the API's JSON, for `HttpClient`."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from engine.api.block_detail import BlockDetail, BlockOwner, PrefixChain, PrefixTree
from engine.api.residency import Residency
from engine.api.snapshot import BlockState
from engine.clients.http_wire import WireError


def block_detail(data: Mapping[str, Any], *, shift: float) -> BlockDetail:
    """One block, its instant shifted by `shift` seconds.

    Raises:
        WireError: members are missing.
    """
    try:
        values = {field.name: data[field.name] for field in fields(BlockDetail)}
        last_used = values["last_used"]
        return BlockDetail(
            **values
            | {
                "state": BlockState(values["state"]),
                "owners": tuple(
                    BlockOwner(one["request_id"], one["first_token"]) for one in values["owners"]
                ),
                "token_ids": tuple(values["token_ids"]),
                "children": tuple(values["children"]),
                "last_used": None if last_used is None else last_used + shift,
            }
        )
    except (KeyError, TypeError, ValueError) as error:
        raise WireError(f"The server's block is not in Pravāha's format ({error}).") from error


def prefix_tree(data: Mapping[str, Any]) -> PrefixTree:
    """The prefix cache.

    Raises:
        WireError: members are missing.
    """
    try:
        names = [field.name for field in fields(PrefixChain)]
        chains = [
            PrefixChain(**{**{name: one[name] for name in names}, "blocks": tuple(one["blocks"])})
            for one in data["chains"]
        ]
        return PrefixTree(tuple(chains), data["block_size"], data["truncated"])
    except (KeyError, TypeError, ValueError) as error:
        raise WireError(
            f"The server's prefix tree is not in Pravāha's format ({error})."
        ) from error


def residency(data: Mapping[str, Any]) -> Residency:
    """How much of a path is in the pool and in the swap tier.

    Raises:
        WireError: members are missing.
    """
    try:
        values = {field.name: data[field.name] for field in fields(Residency)}
        return Residency(**{**values, "blocks": tuple(values["blocks"])})
    except (KeyError, TypeError) as error:
        raise WireError(f"The server's residency is not in Pravāha's format ({error}).") from error
