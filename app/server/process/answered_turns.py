"""`AnsweredTurns`: the token ids of the conversations that this server has answered, by their messages.

The next request of a conversation has its messages, the answer, and what came after. If they are those that
were answered here, its prompt begins with the tokens that were computed then, whatever the client has done
to the answer's text, reasoning and calls (`engine.text.continued_chat`). Only messages decide: names of
sessions in a request are for the figures. Conversations of different cache salts know nothing of each other.

Invariants: an entry is found under the hash of everything that its prompt was made of; the sum of all ids is
bounded; the entry that was not used for the longest time goes first. Cost: one hash of the messages for each
request.
"""

import hashlib
import threading
from array import array
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from engine.api.chat import ChatMessage

MAX_BYTES = 64 << 20
"""Bytes of token ids: sixteen million tokens."""
KEY_BYTES = 16


@dataclass(frozen=True, slots=True)
class Beginning:
    """A computed sequence with which a conversation begins.

    Attributes:
        answer: index of the message with which it ends.
        ids: the token ids of prompt and answer.
    """

    answer: int
    ids: Sequence[int]


class AnsweredTurns:
    """The answered conversations of one server. Thread-safe."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._bytes = 0
        self._lock = threading.Lock()
        self._ids: OrderedDict[bytes, array[int]] = OrderedDict()

    def add(self, conversation: "ConversationKey", answer: ChatMessage, ids: Sequence[int]) -> None:
        """Keep the ids of a prompt and its answer, also for a client that drops the text beside calls."""
        keys, kept = {conversation.after(answer)}, array("i", ids)
        if answer.get("tool_calls"):
            keys.add(conversation.after({**answer, "content": ""}))
        for key in keys:
            self.restore(key, kept)

    def entries(self) -> list[tuple[bytes, "array[int]"]]:
        """Keys and ids, the last used one at the end."""
        with self._lock:
            return list(self._ids.items())

    def restore(self, key: bytes, ids: Sequence[int]) -> None:
        """Keep an entry of `entries`."""
        kept = ids if isinstance(ids, array) else array("i", ids)
        with self._lock:
            self._drop(key)
            self._ids[key] = kept
            self._bytes += len(kept) * kept.itemsize
            while self._bytes > self._max_bytes:
                self._drop(next(iter(self._ids)))

    def find(self, conversation: "ConversationKey") -> Beginning | None:
        """The longest computed sequence with which a conversation begins; None if there is none."""
        for index in reversed(range(len(conversation.messages))):
            if conversation.messages[index]["role"] != "assistant":
                continue
            with self._lock:
                ids = self._ids.get(key := conversation.keys[index])
                if ids is not None:
                    self._ids.move_to_end(key)
                    return Beginning(index, ids)
        return None

    def _drop(self, key: bytes) -> None:
        ids = self._ids.pop(key, None)
        if ids is not None:
            self._bytes -= len(ids) * ids.itemsize


class ConversationKey:
    """The hashes of a conversation: of each of its beginnings.

    Attributes:
        messages: as the chat template reads them.
        keys: for each message, the hash of everything up to and including it.
    """

    def __init__(self, messages: Sequence[ChatMessage], circumstances: Mapping[str, Any]) -> None:
        """Hash a conversation.

        Args:
            messages: the conversation.
            circumstances: JSON values of all else that the prompt is made of.
        """
        self.messages = messages
        self._start = _digest(b"", dict(circumstances))
        self.keys: list[bytes] = []
        for message in messages:
            self.keys.append(_digest(self.last, _canonical(message)))

    @property
    def last(self) -> bytes:
        """The hash of the whole conversation."""
        return self.keys[-1] if self.keys else self._start

    @property
    def beginning(self) -> bytes:
        """The hash up to the first message of the user, which the requests of a conversation share."""
        first = next((i for i, one in enumerate(self.messages) if one["role"] == "user"), None)
        return self.last if first is None else self.keys[first]

    def after(self, answer: ChatMessage) -> bytes:
        """The hash of the conversation with an answer."""
        return _digest(self.last, _canonical(answer))


def _digest(before: bytes, value: Any) -> bytes:
    text = orjson.dumps(value, option=orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS)
    return hashlib.blake2b(before + text, digest_size=KEY_BYTES).digest()


def _canonical(message: ChatMessage) -> list[Any]:
    """What of a message must be equal.

    Clients trim answers, write the arguments of calls with other spaces and numbers, and drop or rename ids
    of calls. Most drop the reasoning; one that was changed is not looked at, as templates leave earlier ones
    out.
    """
    content = message["content"]
    if message["role"] != "assistant":
        return [message["role"], content]
    calls = [
        [call["function"]["name"], _numbers_alike(call["function"]["arguments"] or {})]
        for call in message.get("tool_calls") or ()
    ]
    return ["assistant", content.strip() if isinstance(content, str) else content, calls]


def _numbers_alike(value: Any) -> Any:
    """A JSON value whose numbers are all floating-point ones, as in JavaScript, which writes 1.0 as 1."""
    if isinstance(value, dict):
        return {name: _numbers_alike(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_numbers_alike(one) for one in value]
    if isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    return value
