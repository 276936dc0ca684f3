"""Export of a conversation: the whole tree as JSON or JSON Lines, the open path as Markdown or messages.

`importing.py` reads JSON, JSON Lines and messages back.
"""

import base64
import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from engine.api.image import Image
from engine.conversations.node_words import ROLES
from engine.conversations.storage.store import Store
from engine.conversations.tree import Node, NodeKind, NodeView
from engine.conversations.tree_contents import TreeContents

FORMAT = "pravaha-conversation"
VERSION = 1
_OPENAI = (NodeKind.SYSTEM, NodeKind.USER, NodeKind.ASSISTANT, NodeKind.TOOL)


def export_json(contents: TreeContents) -> str:
    """The whole tree as one JSON object: title, nodes with tokens, logprobs and images, and pointers."""
    document = {
        "format": FORMAT,
        "version": VERSION,
        "title": contents.title,
        "nodes": [_object(node) for node in contents.nodes],
        "pointers": [[one.target, one.key, one.value] for one in contents.pointers],
    }
    return json.dumps(document, ensure_ascii=False, indent=1) + "\n"


def export_markdown(title: str, path: Sequence[NodeView]) -> str:
    """The messages of a path as Markdown, each under a heading with its author; images are counted."""
    parts = [f"# {title}"]
    for node in path:
        author = ROLES[node.kind] + (f" ({node.model})" if node.model else "")
        count = node.n_images or 0
        shown = [f"*{count} {'image' if count == 1 else 'images'}*"] if count else []
        parts += [f"## {author}", *shown, node.text.strip()]
    return "\n\n".join(parts) + "\n"


def export_messages(path: Sequence[NodeView], images_of: Callable[[str], Sequence[Image]]) -> str:
    """The messages of a path as a list of OpenAI's chat format. Notes and summaries are left out.

    Args:
        path: the messages.
        images_of: the images of a message with this id.
    """
    messages = [
        {
            "role": node.kind.value,
            "content": _content(node.text, images_of(node.id)) if node.n_images else node.text,
        }
        for node in path
        if node.kind in _OPENAI
    ]
    return json.dumps(messages, ensure_ascii=False, indent=1) + "\n"


def _content(text: str, images: Sequence[Image]) -> list[dict[str, Any]]:
    """The parts of a message with images, which are data URLs."""
    urls = [f"data:{one.media_type};base64,{_base64(one)}" for one in images]
    parts: list[dict[str, Any]] = [{"type": "image_url", "image_url": {"url": url}} for url in urls]
    return [*parts, {"type": "text", "text": text}]


def export_jsonl(store: Store, tree_id: str) -> Iterator[str]:
    """The tree's nodes, one JSON object per item, without newlines.

    `id` and `parentId` define the tree; absent values are omitted. Token ids, logprobs and timings are
    included, and images in base64. Reads committed data.
    """
    for node in store.nodes.of_tree(tree_id):
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
        "acceptedDrafts": _indices(node.drafted) if node.drafted else None,
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
        "context": node.context,
        "passages": None if node.passages is None else json.loads(node.passages),
        "passageCount": node.n_passages,
        "checkedText": node.checked_text,
        "citations": None if node.citations is None else json.loads(node.citations),
        "reasoning": node.reasoning,
        "answerAt": node.answer_at,
        "reasoningTokens": node.n_reasoning,
        "reasoningMicroseconds": node.reasoning_us,
        "calls": None if node.calls is None else json.loads(node.calls),
        "images": [{"data": _base64(one)} for one in node.images] or None,
    }
    return fields | {name: value for name, value in optional.items() if value is not None}


def _base64(image: Image) -> str:
    return base64.b64encode(image.data).decode()


def _indices(flags: Sequence[bool]) -> list[int]:
    return [at for at, flag in enumerate(flags) if flag]
