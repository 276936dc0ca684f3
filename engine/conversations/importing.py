"""Import of a conversation from untrusted text: our JSON and JSON Lines, and OpenAI message lists.

Every mistake in the text is an `InvalidRequest` with one sentence; nothing is saved then. Nodes get new
ids, so that the same file can be read twice.
"""

import base64
import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NoReturn

from engine.api.errors import InvalidRequest
from engine.api.image import MAX_IMAGES, Image
from engine.api.request import TopLogprob
from engine.conversations.assignment import Assignment
from engine.conversations.titles import default_title, title_of
from engine.conversations.tree import Node, NodeKind, NodeStatus
from engine.conversations.tree_contents import TreeContents
from engine.vision.opening import open_image

MAX_CHARACTERS = 256 * 1024 * 1024
"""Longest text that is read."""
MAX_NODES = 100_000
_DATA_URL = re.compile(r"data:image/[a-z]+;base64,(?P<data>[A-Za-z0-9+/=]*)")
_MAX_INT = 2**63 - 1
_MAX_SEED = 2**64 - 1
_MAX_TOKEN = 2**32 - 1
_MAX_ALTERNATIVES = 255
_ROLES = {
    "system": NodeKind.SYSTEM,
    "developer": NodeKind.SYSTEM,
    "user": NodeKind.USER,
    "assistant": NodeKind.ASSISTANT,
    "tool": NodeKind.TOOL,
}


def read_conversation(text: str, *, new_id: Callable[[], str], now: float) -> TreeContents:
    """The conversation in a text, with new ids.

    Args:
        text: our JSON or JSON Lines, or a list of OpenAI's chat messages.
        new_id: returns increasing ids.
        now: seconds since the epoch, for messages without a date.

    Raises:
        InvalidRequest: the text is too long, or is no conversation.
    """
    if len(text) > MAX_CHARACTERS:
        _refuse("it is too large")
    document = _decode(text)
    tree_id = new_id()
    if isinstance(document, Mapping) and "nodes" in document:
        title, nodes = document.get("title"), document["nodes"]
        pointers = document.get("pointers", [])
        return _tree(tree_id, title, nodes, pointers, new_id, now)
    if isinstance(document, Mapping) and "messages" in document:
        document = document["messages"]
    if (
        isinstance(document, list)
        and all(isinstance(one, Mapping) for one in document)
        and document
    ):
        if "role" in document[0]:
            return _messages(tree_id, document, new_id, now)
        if "kind" in document[0]:
            return _tree(tree_id, None, document, [], new_id, now)
    raise _error("it is neither an exported conversation nor a list of chat messages")


def _decode(text: str) -> Any:
    """One JSON value, or one per line as a list."""
    text = text.removeprefix("\ufeff").strip()
    try:
        try:
            return json.loads(text)
        except json.JSONDecodeError:
            return [json.loads(line) for line in text.split("\n") if line.strip()]
    except (ValueError, RecursionError):
        _refuse("it is not JSON")


def _messages(
    tree_id: str, messages: list[Mapping[str, Any]], new_id: Callable[[], str], now: float
) -> TreeContents:
    _check_count(messages)
    nodes: list[Node] = []
    for number, message in enumerate(messages, start=1):
        kind = _ROLES.get(str(message.get("role")))
        if kind is None:
            _refuse(f"message {number} has no role that is known")
        images = _message_images(message.get("content"), number)
        if images and kind is not NodeKind.USER:
            _refuse(f"message {number} is not the user's and has images")
        nodes.append(
            Node(
                id=new_id(),
                tree_id=tree_id,
                parent_id=nodes[-1].id if nodes else None,
                kind=kind,
                text=_content(message.get("content"), number),
                status=NodeStatus.DONE,
                created_at=now,
                n_images=len(images) or None,
                images=images,
            )
        )
    return _contents(tree_id, None, nodes, [])


def _content(content: Any, number: int) -> str:
    if content is None:
        return ""
    if isinstance(content, str):
        return _clean(content)
    if isinstance(content, list):
        content = [part for part in content if not _is_image(part)]
        texts = [part.get("text") for part in content if isinstance(part, Mapping)]
        if len(texts) == len(content) and all(isinstance(text, str) for text in texts):
            return _clean("".join(map(str, texts)))
    raise _error(f"the content of message {number} is not text")


def _is_image(part: Any) -> bool:
    return isinstance(part, Mapping) and part.get("type") == "image_url"


def _message_images(content: Any, number: int) -> tuple[Image, ...]:
    """The images of a message's parts, which must be data URLs: nothing is fetched."""
    if not isinstance(content, list):
        return ()
    parts = [part.get("image_url") for part in content if _is_image(part)]
    if len(parts) > MAX_IMAGES:
        _refuse(f"message {number} has more than {MAX_IMAGES} images")
    images = []
    for part in parts:
        url = part.get("url") if isinstance(part, Mapping) else part
        found = _DATA_URL.fullmatch(url) if isinstance(url, str) else None
        if found is None:
            _refuse(f"an image of message {number} is not a data: URL in base64")
        images.append(_image({"data": found["data"]}, number))
    return tuple(images)


def _tree(
    tree_id: str,
    title: Any,
    objects: Any,
    pointers: Any,
    new_id: Callable[[], str],
    now: float,
) -> TreeContents:
    _check_count(objects)
    ids: dict[str, str] = {}
    nodes: list[Node] = []
    for number, one in enumerate(objects, start=1):
        if not isinstance(one, Mapping):
            _refuse(f"message {number} is not an object")
        fields = _Fields(one, number)
        old = fields.string("id")
        if old is None or old in ids:
            _refuse(f"message {number} has no id of its own")
        parent = fields.string("parentId")
        if parent is not None and parent not in ids:
            _refuse(f"message {number} comes before the one that it answers")
        ids[old] = new_id()
        nodes.append(_node(fields, tree_id, ids[old], ids.get(parent or ""), now))
    nodes = [_with_new_reference(node, ids) for node in nodes]
    return _contents(tree_id, title, nodes, _pointers(pointers, ids))


def _node(fields: "_Fields", tree_id: str, node_id: str, parent_id: str | None, now: float) -> Node:
    kind, status = fields.string("kind"), fields.string("status") or NodeStatus.DONE
    if kind not in list(NodeKind) or status not in list(NodeStatus):
        _refuse(f"message {fields.number} has an unknown kind or status")
    text = fields.string("text")
    if text is None:
        _refuse(f"message {fields.number} has no text")
    token_ids = fields.integers("tokenIds", _MAX_TOKEN)
    logprobs = fields.logprobs()
    topk = fields.alternatives()
    count = 0 if token_ids is None else len(token_ids)
    if len(logprobs) not in (0, count) or len(topk) not in (0, count):
        _refuse(f"message {fields.number} has not one logprob per token")
    if status == NodeStatus.STREAMING:
        status = NodeStatus.STOPPED
    created_at = fields.number_of("createdAt")
    sampling = fields.value("sampling", dict)
    images = fields.images()
    if images and kind != NodeKind.USER:
        _refuse(f"message {fields.number} is not the user's and has images")
    return Node(
        id=node_id,
        tree_id=tree_id,
        parent_id=parent_id,
        kind=NodeKind(kind),
        text=text,
        status=NodeStatus(status),
        created_at=now if created_at is None else created_at,
        token_ids=token_ids,
        logprobs=logprobs,
        topk=topk,
        drafted=fields.accepted_drafts(count),
        tokenizer=fields.string("tokenizer"),
        finish=fields.string("finish"),
        error=fields.string("error"),
        model=fields.string("model"),
        sampling=None if sampling is None else json.dumps(sampling),
        seed=fields.integer("seed", _MAX_SEED),
        forked_from=fields.string("forkedFrom"),
        fork_token=fields.integer("forkToken"),
        n_prompt=fields.integer("promptTokens"),
        n_cached=fields.integer("cachedTokens"),
        n_gen=fields.integer("generatedTokens"),
        ttft_us=fields.integer("ttftMicroseconds"),
        decode_us=fields.integer("decodeMicroseconds"),
        label=fields.string("label"),
        rating=fields.integer("rating"),
        pruned_at=fields.number_of("prunedAt"),
        context=fields.string("context"),
        passages=fields.json("passages", list),
        n_passages=fields.integer("passageCount"),
        citations=fields.json("citations", list),
        checked_text=fields.string("checkedText"),
        calls=fields.json("calls", list),
        reasoning=fields.string("reasoning"),
        answer_at=fields.integer("answerAt", len(text)),
        n_reasoning=fields.integer("reasoningTokens"),
        reasoning_us=fields.integer("reasoningMicroseconds"),
        n_images=len(images) or None,
        images=images,
    )


def _with_new_reference(node: Node, ids: Mapping[str, str]) -> Node:
    return replace(node, forked_from=ids.get(node.forked_from or ""))


def _pointers(pointers: Any, ids: Mapping[str, str]) -> list[Assignment]:
    """The pointers with new ids; those that point at nothing are dropped."""
    if not isinstance(pointers, list):
        _refuse("its pointers are not a list")
    found: list[Assignment] = []
    for one in pointers:
        if not isinstance(one, list) or len(one) != 3 or not all(isinstance(x, str) for x in one):
            _refuse("one of its pointers is not a list of three texts")
        target, key, value = one
        name = " ".join(_clean(value).split())
        if target == "model" and name and (key == "" or key in ids):
            found.append(Assignment("model", ids.get(key, ""), name))
        if value not in ids:
            continue
        if target == "head":
            found.append(Assignment("head", " ".join(_clean(key).split()) or "branch", ids[value]))
        elif target == "checkout" and (key == "" or key in ids):
            found.append(Assignment("checkout", ids.get(key, ""), ids[value]))
    return found


def _contents(
    tree_id: str, title: Any, nodes: list[Node], pointers: list[Assignment]
) -> TreeContents:
    """The tree; without a usable HEAD it is open at the last node."""
    parents = {node.id: node.parent_id or "" for node in nodes}
    pruned = {node.id for node in nodes if node.pruned_at is not None}
    # A checkout must be a child of its node, and HEAD a node that is not hidden.
    pointers = [
        one
        for one in pointers
        if (one.target != "checkout" or parents[str(one.value)] == one.key)
        and not (one.key == "HEAD" and one.value in pruned)
    ]
    if not any(one.target == "head" and one.key == "HEAD" for one in pointers):
        visible = [node for node in nodes if node.id not in pruned]
        if not visible:
            _refuse("all its messages are pruned")
        end: str | None = visible[-1].id
        pointers.append(Assignment("head", "HEAD", end))
        while end:
            pointers.append(Assignment("checkout", parents[end], end))
            end = parents[end]
    if not isinstance(title, str) or not title.strip():
        first = next((node for node in nodes if node.kind is NodeKind.USER), nodes[0])
        title = default_title(first.text)
    return TreeContents(tree_id, title_of(_clean(title)), tuple(nodes), tuple(pointers))


class _Fields:
    """Typed access to the fields of one node; a wrong type is refused."""

    def __init__(self, fields: Mapping[str, Any], number: int) -> None:
        self._fields = fields
        self.number = number

    def value(self, name: str, kind: type) -> Any:
        found = self._fields.get(name)
        if found is not None and (not isinstance(found, kind) or isinstance(found, bool)):
            _refuse(f"{name} of message {self.number} is not valid")
        return found

    def json(self, name: str, kind: type) -> str | None:
        """The JSON text of a value, which its reader checks."""
        found = self.value(name, kind)
        return None if found is None else json.dumps(found)

    def string(self, name: str) -> str | None:
        found = self.value(name, str)
        return None if found is None else _clean(found)

    def integer(self, name: str, most: int = _MAX_INT) -> int | None:
        found = self.value(name, int)
        if found is not None and not 0 <= found <= most:
            _refuse(f"{name} of message {self.number} is out of range")
        return None if found is None else int(found)

    def number_of(self, name: str) -> float | None:
        found = self.value(name, int | float)  # type: ignore[arg-type]  # isinstance takes a union
        if found is not None and not 0 <= found < _MAX_INT:
            _refuse(f"{name} of message {self.number} is out of range")
        return None if found is None else float(found)

    def integers(self, name: str, most: int) -> tuple[int, ...] | None:
        found = self.value(name, list)
        if found is None:
            return None
        if not all(type(one) is int and 0 <= one <= most for one in found):
            _refuse(f"{name} of message {self.number} is not a list of tokens")
        return tuple(found)

    def logprobs(self) -> tuple[float, ...]:
        return tuple(self._logprob(one) for one in self.value("logprobs", list) or ())

    def accepted_drafts(self, count: int) -> tuple[bool, ...]:
        """One flag for each of `count` tokens; empty if the field is absent."""
        indices = self.value("acceptedDrafts", list)
        if indices is None:
            return ()
        if not all(type(one) is int and 0 <= one < count for one in indices):
            _refuse(f"acceptedDrafts of message {self.number} are not indices of its tokens")
        found = set(indices)
        return tuple(at in found for at in range(count))

    def images(self) -> tuple[Image, ...]:
        found = self.value("images", list) or ()
        if len(found) > MAX_IMAGES:
            _refuse(f"message {self.number} has more than {MAX_IMAGES} images")
        return tuple(_image(one, self.number) for one in found)

    def alternatives(self) -> tuple[tuple[TopLogprob, ...], ...]:
        positions = self.value("topk", list) or ()
        return tuple(tuple(map(self._alternative, self._position(one))) for one in positions)

    def _position(self, one: Any) -> list[Any]:
        if not isinstance(one, list) or len(one) > _MAX_ALTERNATIVES:
            _refuse(f"topk of message {self.number} is not valid")
        return one

    def _alternative(self, pair: Any) -> TopLogprob:
        if not isinstance(pair, list) or len(pair) != 2 or type(pair[0]) is not int:
            _refuse(f"topk of message {self.number} is not valid")
        if not 0 <= pair[0] <= _MAX_TOKEN:
            _refuse(f"topk of message {self.number} is not valid")
        return TopLogprob(pair[0], self._logprob(pair[1]))

    def _logprob(self, one: Any) -> float:
        if isinstance(one, bool) or not isinstance(one, int | float):
            _refuse(f"a logprob of message {self.number} is not a number")
        if not (one <= 1 or math.isnan(one)):
            _refuse(f"a logprob of message {self.number} is out of range")
        return float(one) if one > -1e9 or math.isnan(one) else -1e9


def _image(one: Any, number: int) -> Image:
    try:
        return open_image(base64.b64decode(one["data"], validate=True))
    except (InvalidRequest, TypeError, KeyError, ValueError):
        _refuse(f"an image of message {number} is damaged or of a kind that is not read")


def _clean(text: str) -> str:
    """Text that SQLite can store: lone surrogates are replaced."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _check_count(nodes: Any) -> None:
    if not isinstance(nodes, list) or not nodes:
        _refuse("it has no messages")
    if len(nodes) > MAX_NODES:
        _refuse(f"it has more than {MAX_NODES} messages")


def _refuse(why: str) -> NoReturn:
    raise _error(why)


def _error(why: str) -> InvalidRequest:
    return InvalidRequest(f"The file cannot be imported: {why}.")
