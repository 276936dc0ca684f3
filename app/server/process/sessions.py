"""`Sessions`: what the prompts of each conversation have cost: tokens that were new, reused, and read again.

A token of a prompt is *new* if it stands behind everything that the session's prompts and answers had in
common with it so far; only new tokens need to be computed. A token that was computed although it is not new
was *read again*: its KV was evicted, or the prompt has changed before it.

A request belongs to the session that it names, in a field or a header of one of the clients; else its
beginning, up to the first message of the user, is the session. Names only sort these figures: what is used
again is decided by tokens alone.
"""

import time
from array import array
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

MAX_SESSIONS = 256
MAX_NAME = 128
SESSION_HEADERS = (
    "x-session-id",
    "session_id",
    "session-id",
    "x-session-affinity",
    "x-affinity",
    "conversation_id",
)
"""Names of sessions by client: opencode and others, Codex, pi, vibe."""


@dataclass(slots=True)
class Session:
    """The figures of one session.

    Attributes:
        name: as the client gave it, or of the hash of its beginning.
        requests: how many were answered.
        prompt_tokens: the sum of all prompts.
        new_tokens: those that were new.
        computed_tokens: those that were computed.
        reread_tokens: those that were computed and not new.
        last_used: Unix time.
        last: token ids of the last prompt and its answer.
    """

    name: str
    requests: int = 0
    prompt_tokens: int = 0
    new_tokens: int = 0
    computed_tokens: int = 0
    reread_tokens: int = 0
    last_used: float = 0.0
    last: "array[int]" = field(default_factory=lambda: array("i"), repr=False)

    @property
    def hit_rate(self) -> float:
        """The share of the prompts' tokens that was not computed."""
        return 1 - self.computed_tokens / self.prompt_tokens if self.prompt_tokens else 0.0


@dataclass(frozen=True, slots=True)
class PromptCost:
    """How the tokens of one prompt were come by; they add up to the prompt."""

    new: int
    reused: int
    reread: int


class Sessions:
    """The sessions that were used last. Event loop only."""

    def __init__(self, max_sessions: int = MAX_SESSIONS) -> None:
        self._max_sessions = max_sessions
        self._sessions: OrderedDict[str, Session] = OrderedDict()

    def add(
        self, name: str, prompt: Sequence[int], answer: Sequence[int], cached_tokens: int
    ) -> PromptCost:
        """Count one answered request.

        Args:
            name: of the session.
            prompt: token ids.
            answer: token ids.
            cached_tokens: of the prompt, which were not computed.
        """
        session = self._sessions.setdefault(name, Session(name))
        self._sessions.move_to_end(name)
        if len(self._sessions) > self._max_sessions:
            self._sessions.popitem(last=False)
        ids = array("i", prompt)
        computed = len(ids) - cached_tokens
        new = len(ids) - _common(session.last, ids)
        # Of another session's tokens as many may be cached: what was not computed is not read again.
        cost = PromptCost(min(new, computed), cached_tokens, max(0, computed - new))
        session.requests += 1
        session.prompt_tokens += len(ids)
        session.new_tokens += new
        session.computed_tokens += computed
        session.reread_tokens += cost.reread
        session.last_used = time.time()
        session.last = ids + array("i", answer)
        return cost

    def recent(self) -> list[Session]:
        """The sessions, the last used one first."""
        return list(reversed(self._sessions.values()))


def session_name(headers: Mapping[str, str], given: str | None, beginning: bytes) -> str:
    """The name of a request's session.

    Args:
        headers: of the request.
        given: by a field of the body.
        beginning: the hash of its first messages.
    """
    named = given or next((headers[one] for one in SESSION_HEADERS if headers.get(one)), None)
    return named[:MAX_NAME] if named else f"conversation-{beginning.hex()[:12]}"


def _common(one: "array[int]", other: "array[int]") -> int:
    """The length of the common beginning."""
    size = min(len(one), len(other))
    if not size:
        return 0
    differs = np.frombuffer(one, np.int32)[:size] != np.frombuffer(other, np.int32)[:size]
    return int(differs.argmax()) if differs.any() else size
