"""`Sessions`: what the prompts of each conversation have cost: tokens that were new, reused, and read again.

A token of a prompt is *new* if it stands behind everything that the session's prompts and answers had in
common with it so far; only new tokens need to be computed. A token that was computed although it is not new
was *read again*: its KV was evicted, or the prompt has changed before it.

A request belongs to the session that it names, in a field or a header of one of the clients; else its
beginning, up to the first message of the user, is the session. Names only sort these figures: what is used
again is decided by tokens alone. The engine has a name for each conversation of a session (`branch_name`), by
which it keeps KV blocks while the next request is expected (`engine.memory.sessions`).
"""

import json
import re
import time
from array import array
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from engine.text.common_prefix import common_prefix

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
REQUEST_HEADER = "x-client-request-id"
"""pi's name of a session; other clients send a new one with each request."""
MAX_REQUEST_NAMES = 1024
_IN_USER_ID = re.compile(r"_session_([0-9a-fA-F-]{8,64})$")


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
    """The sessions that were used last. Event loop only.

    Attributes:
        request_names: the names that requests have had in `REQUEST_HEADER`.
    """

    def __init__(self, max_sessions: int = MAX_SESSIONS) -> None:
        self._max_sessions = max_sessions
        self._sessions: OrderedDict[str, Session] = OrderedDict()
        self.request_names = RequestNames()

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


class RequestNames:
    """Tells names of sessions in `REQUEST_HEADER` from ids of requests, which come once. Event loop only."""

    def __init__(self) -> None:
        self._seen: OrderedDict[str, None] = OrderedDict()

    def is_session(self, name: str) -> bool:
        """Whether a request has had this name before; remembers it."""
        seen = name in self._seen
        self._seen[name] = None
        self._seen.move_to_end(name)
        if len(self._seen) > MAX_REQUEST_NAMES:
            self._seen.popitem(last=False)
        return seen


def session_of_user(user_id: object) -> str | None:
    """The session in the `metadata.user_id` of Anthropic's API; None without any.

    Claude Code writes it as `user_…_account_…_session_…`, or as a JSON object with `session_id`. Any other
    id names a user, who may have several sessions.
    """
    if not isinstance(user_id, str):
        return None
    found = _IN_USER_ID.search(user_id)
    if found is not None:
        return found.group(1)
    try:
        given = json.loads(user_id)
    except (ValueError, RecursionError):
        return None
    name = given.get("session_id") if isinstance(given, dict) else None
    return name[:MAX_NAME] if isinstance(name, str) and name else None


def given_name(headers: Mapping[str, str], given: str | None, seen: RequestNames) -> str | None:
    """The name that a request gives its session, in a field or in a header; None without any."""
    named = given or next((headers[one] for one in SESSION_HEADERS if headers.get(one)), None)
    request_name = headers.get(REQUEST_HEADER)
    if named is None and request_name and seen.is_session(request_name[:MAX_NAME]):
        named = request_name
    return named[:MAX_NAME] if named else None


def session_name(named: str | None, beginning: bytes) -> str:
    """The name of a chat's session: the one it gives, or one by the hash of its first messages."""
    return named or f"conversation-{beginning.hex()[:12]}"


def branch_name(session: str, beginning: bytes) -> str:
    """The engine's name of one conversation of a session: sub-agents may share the name of theirs."""
    return f"{session}/{beginning.hex()[:12]}"


def _common(one: "array[int]", other: "array[int]") -> int:
    """The length of the common beginning."""
    if not one or not other:  # numpy reads no empty buffer
        return 0
    return common_prefix(np.frombuffer(one, np.int32), np.frombuffer(other, np.int32))
