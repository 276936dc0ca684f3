"""`Approvals`: pending tool calls that wait for a person's decision.

One queue for the screen, HTTP and the command line; the first answer wins. Unanswered requests are denied
after `TIMEOUT_S`. "Always" holds for one agent, one tool and one exact target within one conversation. Use
from one event loop; `pending` and `decide` may be called from it only.
"""

import asyncio
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from agents.api.errors import PermissionDenied
from agents.tools.tool import Effect

TIMEOUT_S = 300.0
Decision = Literal["once", "always", "deny"]
Mode = Literal["auto", "ask", "deny"]


@dataclass(frozen=True, slots=True)
class ApprovalRequest:
    """A call that waits.

    Attributes:
        id: of this request.
        run: the run's id.
        agent: key of the agent.
        tool: name of the tool.
        arguments: exact arguments as JSON text; of a repair, its own words, and the diff at their end.
        target: the words a rule is matched against, such as the command.
        effects: what the tool may do.
        folder: the working folder.
        reason: why approval is needed, such as taint; may be empty.
        conversation: what "always" is limited to.
        diff: what the call would change in files, as a unified diff; empty if that is not known.
        expires_at: Unix seconds at which it is denied.
    """

    id: str
    run: str
    agent: str
    tool: str
    arguments: str
    target: str
    effects: frozenset[Effect]
    folder: str
    reason: str = ""
    conversation: str = ""
    expires_at: float = 0.0
    diff: str = ""

    @property
    def above_diff(self) -> str:
        """The arguments, without the diff at their end; empty if the diff stands for them."""
        return self.arguments.removesuffix(self.diff) if self.arguments.endswith(self.diff) else ""

    @property
    def pattern(self) -> str:
        """What "always" allows: the exact target, or the exact arguments of a tool without targets."""
        return self.target or self.arguments


class Approvals:
    """The pending requests, and what was allowed always in a conversation, by pattern and reason.

    What was allowed always before a run read untrusted and private data is asked again afterwards.
    """

    def __init__(
        self,
        *,
        timeout_s: float = TIMEOUT_S,
        has_approver: bool = True,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        """`has_approver` false denies at once what would have to be asked."""
        self._timeout_s = timeout_s
        self._wall = wall_clock
        self.has_approver = has_approver
        self._waiting: dict[str, tuple[ApprovalRequest, asyncio.Future[tuple[Decision, str]]]] = {}
        self._allowed: set[tuple[str, ...]] = set()
        self._listeners: list[Callable[[], None]] = []

    @property
    def pending(self) -> tuple[ApprovalRequest, ...]:
        """What waits, oldest first."""
        return tuple(request for request, _ in self._waiting.values())

    def on_change(self, listener: Callable[[], None]) -> None:
        """Call `listener` when a request arrives or is decided."""
        self._listeners.append(listener)

    def decide(self, request_id: str, decision: Decision, *, reason: str = "") -> bool:
        """Answer a request; False if it was answered already or is unknown."""
        request, future = self._waiting.get(request_id, (None, None))
        if request is None or future is None or future.done():
            return False
        if decision == "always":
            self._allowed.add(_rule(request))
        future.set_result((decision, reason))
        return True

    async def ask(self, request: ApprovalRequest) -> None:
        """Wait until the call is allowed.

        Raises:
            PermissionDenied: it was denied, nobody answered in time, or nobody can be asked.
        """
        if _rule(request) in self._allowed:
            return
        if not self.has_approver:
            why = f" because {request.reason}" if request.reason else ""
            raise PermissionDenied(
                f"{request.tool} needs an approval{why}, and nobody can be asked here: run it in a "
                "terminal, or with --approve auto where only the mode asks."
            )
        future: asyncio.Future[tuple[Decision, str]] = asyncio.get_running_loop().create_future()
        expires_at = self._wall() + self._timeout_s
        self._waiting[request.id] = replace(request, expires_at=expires_at), future
        self._changed()
        try:
            async with asyncio.timeout(self._timeout_s):
                decision, reason = await future
        except TimeoutError:
            raise PermissionDenied(
                f"{request.tool} was denied: nobody answered within {self._timeout_s:g} s."
            ) from None
        finally:
            del self._waiting[request.id]
            self._changed()
        if decision == "deny":
            why = f": {reason}" if reason else ""
            raise PermissionDenied(f"{request.tool} was denied{why}.")

    def _changed(self) -> None:
        for listener in tuple(self._listeners):
            listener()


def _rule(request: ApprovalRequest) -> tuple[str, ...]:
    scope = request.conversation or request.run
    return scope, request.agent, request.tool, request.pattern, request.reason


def new_approval_id() -> str:
    """A fresh opaque id."""
    return f"approval-{uuid.uuid4().hex[:12]}"
