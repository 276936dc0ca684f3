"""Conversion between `Node` and rows of the table `node`."""

import re
from typing import Any

from engine.conversations.storage.blobs import (
    pack_flags,
    pack_ids,
    pack_logprobs,
    pack_top,
    unpack_flags,
    unpack_ids,
    unpack_logprobs,
    unpack_top,
)
from engine.conversations.tree import VIEW_FIELDS, Node, NodeKind, NodeStatus, NodeView

_SURROGATE = re.compile("[\ud800-\udfff]")

NODE_COLUMNS = tuple(name for name in Node.__dataclass_fields__ if name != "images")
"""Columns in the order of `Node`'s fields; `images` are in a table of their own."""


def row_from_node(node: Node, writer: str | None) -> tuple[Any, ...]:
    """The values of `NODE_COLUMNS`, then `writer`."""
    values = {name: getattr(node, name) for name in NODE_COLUMNS}
    values["kind"], values["status"] = node.kind.value, node.status.value
    values["text"] = storable(node.text)
    for name in ("context", "passages", "citations", "checked_text", "calls", "reasoning"):
        values[name] = None if values[name] is None else storable(values[name])
    values["token_ids"] = None if node.token_ids is None else pack_ids(node.token_ids)
    values["logprobs"] = pack_logprobs(node.logprobs) if node.logprobs else None
    values["topk"] = pack_top(node.topk) if node.topk else None
    values["drafted"] = pack_flags(node.drafted) if node.drafted else None
    values["seed"] = None if node.seed is None else str(node.seed)
    return (*values.values(), writer)


def node_from_row(row: tuple[Any, ...]) -> Node:
    """The node of a row with the columns `NODE_COLUMNS`."""
    values = dict(zip(NODE_COLUMNS, row, strict=True))
    values["kind"], values["status"] = NodeKind(values["kind"]), NodeStatus(values["status"])
    if values["token_ids"] is not None:
        values["token_ids"] = unpack_ids(values["token_ids"])
    values["logprobs"] = unpack_logprobs(values["logprobs"] or b"")
    values["topk"] = unpack_top(values["topk"] or b"")
    drafted = values["drafted"]
    values["drafted"] = unpack_flags(drafted, len(values["token_ids"])) if drafted else ()
    values["seed"] = None if values["seed"] is None else int(values["seed"])
    return Node(**values)


def view_from_row(row: tuple[Any, ...]) -> NodeView:
    """The view of a row with the columns `VIEW_FIELDS`."""
    values = dict(zip(VIEW_FIELDS, row, strict=True))
    values["kind"], values["status"] = NodeKind(values["kind"]), NodeStatus(values["status"])
    values["seed"] = None if values["seed"] is None else int(values["seed"])
    return NodeView(**values)


def storable(text: str) -> str:
    """Text that SQLite can store: lone surrogates (from invalid terminal input) become U+FFFD."""
    return _SURROGATE.sub("\ufffd", text)
