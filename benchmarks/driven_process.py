"""`DrivenProcess`: a child process with a JSON-lines protocol, stopped (SIGSTOP) between requests."""

import json
import os
import selectors
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from os import PathLike
from typing import Any, Self

TIMEOUT_S = 900.0
"""Seconds without an answer after which a process is killed."""


class ProcessFailed(Exception):
    """The process exited or timed out; the message has the last line of its standard error."""


class DrivenProcess:
    """A child process, stopped between requests, since some engines spin while they wait.

    Attributes:
        hello: the first line it wrote, when it was ready.
    """

    def __init__(self, command: Sequence[str | PathLike[str]]) -> None:
        """Start the process and wait until it is ready.

        Raises:
            ProcessFailed: it exited or timed out.
        """
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed in `close`
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            process_group=0,  # signals reach its children, too; it ends on SIGHUP if we are killed
        )
        self.hello = self._answer()
        self._signal(signal.SIGSTOP)

    @property
    def pid(self) -> int:
        """Process id, also the id of its process group."""
        return self._process.pid

    def ask(self, question: object) -> dict[str, Any]:
        """Send a request and return the answer.

        Raises:
            ProcessFailed: the process exited or timed out.
        """
        assert self._process.stdin is not None
        self._signal(signal.SIGCONT)
        try:
            self._process.stdin.write(json.dumps(question) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise ProcessFailed(self._failure_reason()) from None
        answer = self._answer()
        self._signal(signal.SIGSTOP)
        return answer

    def close(self) -> None:
        """End the process and its children."""
        assert self._process.stdin is not None
        self._signal(signal.SIGCONT)
        try:
            self._process.stdin.close()
        except BrokenPipeError:
            pass
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._signal(signal.SIGKILL)
            self._process.wait()
        self._errors.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            if not selector.select(TIMEOUT_S):
                self._signal(signal.SIGKILL)
                raise ProcessFailed(f"no answer within {TIMEOUT_S:.0f} s")
        line = self._process.stdout.readline()
        if not line:
            raise ProcessFailed(self._failure_reason())
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _signal(self, number: signal.Signals) -> None:
        """Signal the process group, if it still exists."""
        try:
            os.killpg(self._process.pid, number)
        except ProcessLookupError:
            pass

    def _failure_reason(self) -> str:
        status = self._process.wait()
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        said = lines[-1] if lines else "no message on standard error"
        self.close()
        return f"exit status {status}: {said}"
