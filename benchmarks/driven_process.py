"""A process that answers line by line, in JSON, and rests in between."""

import json
import os
import selectors
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from os import PathLike
from typing import Any, Self

PATIENCE_S = 900.0
"""A process that says nothing for so long is taken for hung."""


class ProcessFailed(Exception):
    """The process ended or hung; the message has its last words."""


class DrivenProcess:
    """A started process, stopped between questions: some spin while they wait.

    Attributes:
        hello: what it said when it was ready.
    """

    def __init__(self, command: Sequence[str | PathLike[str]]) -> None:
        """Start it and wait until it is ready.

        Raises:
            ProcessFailed: it ended or hung before that.
        """
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed in `close`
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            process_group=0,  # with the processes that it starts; hung up on if we are killed
        )
        self.hello = self._answer()
        self._signal(signal.SIGSTOP)

    @property
    def pid(self) -> int:
        """Of the process, which leads a group."""
        return self._process.pid

    def ask(self, question: object) -> dict[str, Any]:
        """Its answer.

        Raises:
            ProcessFailed: it ended or hung.
        """
        assert self._process.stdin is not None
        self._signal(signal.SIGCONT)
        try:
            self._process.stdin.write(json.dumps(question) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise ProcessFailed(self._last_words()) from None
        answer = self._answer()
        self._signal(signal.SIGSTOP)
        return answer

    def close(self) -> None:
        """End the process and those that it started."""
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
            if not selector.select(PATIENCE_S):
                self._signal(signal.SIGKILL)
                raise ProcessFailed(f"no answer within {PATIENCE_S:.0f} s")
        line = self._process.stdout.readline()
        if not line:
            raise ProcessFailed(self._last_words())
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _signal(self, number: signal.Signals) -> None:
        """To the process and those that it started; none may be left."""
        try:
            os.killpg(self._process.pid, number)
        except ProcessLookupError:
            pass

    def _last_words(self) -> str:
        status = self._process.wait()
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        said = lines[-1] if lines else "it said nothing"
        self.close()
        return f"exit status {status}: {said}"
