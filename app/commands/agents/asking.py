"""Asks in the terminal whether an agent may call a tool with side effects."""

import asyncio
import json
import sys
from collections.abc import Mapping
from types import TracebackType
from typing import Self

from agents.runs.approvals import ApprovalRequest, Approvals, Decision
from app.text.safe_text import safe_line, safe_text

_DECISIONS: Mapping[str, Decision] = {"y": "once", "a": "always"}


def can_ask() -> bool:
    """Whether there is a person: standard input and standard error are a terminal."""
    return sys.stdin.isatty() and sys.stderr.isatty()


class TerminalApprover:
    """Shows one pending request at a time and reads y, a or n with a reason. Anything but y and a denies."""

    def __init__(self, approvals: Approvals) -> None:
        self._approvals = approvals
        self._asking: asyncio.Task[None] | None = None

    def __enter__(self) -> Self:
        """Begin to listen."""
        if self._approvals.has_approver:
            self._approvals.on_change(self._changed)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Stop asking."""
        if self._asking is not None:
            self._asking.cancel()

    def _changed(self) -> None:
        if self._approvals.pending and (self._asking is None or self._asking.done()):
            self._asking = asyncio.ensure_future(self._ask_all())

    async def _ask_all(self) -> None:
        while self._approvals.pending:
            request = self._approvals.pending[0]
            _show(request)
            word, _, reason = (await _read_line()).partition(" ")
            decision = _DECISIONS.get(word.lower(), "deny")
            told = reason.strip() if word.lower() in ("n", "no") else ""
            self._approvals.decide(request.id, decision, reason=told)
            await asyncio.sleep(0)  # the waiting call removes its request


def _show(request: ApprovalRequest) -> None:
    effects = ", ".join(sorted(request.effects))
    pattern = f"{request.tool} {safe_line(request.pattern)[:120]}"
    print(
        f"\n{request.agent} wants to call {request.tool} ({effects}) in {safe_line(request.folder)}"
        f"{': ' + request.reason if request.reason else ''}\n{_shown(request)}\n"
        f"Allow it? y once, a always for exactly {pattern}, n no (n REASON tells the agent why): ",
        end="",
        file=sys.stderr,
        flush=True,
    )


def _shown(request: ApprovalRequest) -> str:
    """The diff of a change, below what a repair says about it; else the arguments."""
    if not request.diff:
        return _arguments(request.arguments)
    return safe_text(request.above_diff + request.diff)


def _arguments(text: str) -> str:
    """Each argument's name, and its value behind a bar, so that no value looks like another name."""
    try:
        given = json.loads(text)
    except ValueError:
        return safe_text(text)
    lines = []
    for name, value in given.items() if isinstance(given, dict) else [("arguments", given)]:
        shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        lines += [safe_line(str(name)), *(f"  | {line}" for line in safe_text(shown).split("\n"))]
    return "\n".join(lines)


async def _read_line() -> str:
    """A line of the terminal; a thread that waits for one could not be cancelled."""
    loop = asyncio.get_running_loop()
    arrived = asyncio.Event()
    descriptor = sys.stdin.fileno()
    loop.add_reader(descriptor, arrived.set)
    try:
        await arrived.wait()
    finally:
        loop.remove_reader(descriptor)
    return sys.stdin.readline().strip()
