"""Export of a conversation tree as JSON Lines: one node per line, parents before children."""

import json
from collections.abc import Iterator
from typing import Any

from engine.conversations.store import Store
from engine.conversations.tree import Node


def export_jsonl(store: Store, tree_id: str) -> Iterator[str]:
    """The tree's nodes, one JSON object per item, without newlines.

    `id` and `parentId` define the tree; absent values are omitted. Token ids, logprobs and timings are
    included. Reads committed data.
    """
    for node in store.nodes(tree_id):
        yield json.dumps(_object(node), ensure_ascii=False, separators=(",", ":"))


def _object(node: Node) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "id": node.id,
        "parentId": node.parent_id,
        "treeId": node.tree_id,
        "kind": node.kind.value,
        "text": node.text,
        "status": node.status.value,
        "createdAt": node.created_at,
    }
    optional: dict[str, Any] = {
        "finish": node.finish,
        "error": node.error,
        "model": node.model,
        "tokenizer": node.tokenizer,
        "tokenIds": None if node.token_ids is None else list(node.token_ids),
        "logprobs": list(node.logprobs) or None,
        "topk": [[[t.token_id, t.logprob] for t in top] for top in node.topk] or None,
        "sampling": None if node.sampling is None else json.loads(node.sampling),
        "seed": node.seed,
        "forkedFrom": node.forked_from,
        "forkToken": node.fork_token,
        "promptTokens": node.n_prompt,
        "cachedTokens": node.n_cached,
        "generatedTokens": node.n_gen,
        "ttftMicroseconds": node.ttft_us,
        "decodeMicroseconds": node.decode_us,
        "label": node.label,
        "rating": node.rating,
        "prunedAt": node.pruned_at,
    }
    return fields | {name: value for name, value in optional.items() if value is not None}
