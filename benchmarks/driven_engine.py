"""An engine in a process of its own that carries out a benchmark's orders (`benchmarks/drivers`)."""

import json
import os
import selectors
import signal
import subprocess
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from benchmarks.drivers.orders import Order

DRIVERS = Path(__file__).parent / "drivers"
OURS = DRIVERS / "pravaha_driver.py"
PATIENCE_S = 900.0
"""An engine that says nothing for so long is taken for hung."""


class EngineFailed(Exception):
    """The engine's process ended or hung; the message has its last words."""


class OrderRefused(Exception):
    """The engine lives but cannot do this order; the message says why."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """How to start an engine.

    Attributes:
        script: its driver.
        python: the interpreter that has the engine.
        model: in the engine's own format.
        flags: further arguments of the driver.
        label: stands after the engine's name where one engine takes part in two ways.
    """

    script: Path
    python: Path
    model: Path
    flags: tuple[str, ...] = ()
    label: str = ""

    @property
    def called(self) -> str:
        """For sentences about it before it has said its name."""
        return self.script.stem.removesuffix("_driver") + self.label

    @property
    def missing(self) -> Path | None:
        """What is not installed, or None."""
        return next((path for path in (self.python, self.model) if not path.exists()), None)


class DrivenEngine:
    """A started engine, stopped between orders: some spin while they wait.

    Attributes:
        name: engine, weight format and label, as printed.
        hello: what its driver said of it.
    """

    def __init__(self, recipe: Recipe, *, threads: int) -> None:
        """Start it and wait until it is loaded.

        Raises:
            EngineFailed: it ended or hung before it was ready.
        """
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed in `close`
        command = [
            recipe.python,
            recipe.script,
            *("--model", recipe.model, "--threads", str(threads)),
            *recipe.flags,
        ]
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
        self.name = f"{self.hello['engine']} {self.hello['weights']}{recipe.label}"

    @property
    def pid(self) -> int:
        """Of its process, which leads a group."""
        return self._process.pid

    def run(self, order: Order) -> float:
        """Seconds that an order took.

        Raises:
            EngineFailed: the process ended or hung.
            OrderRefused: the engine cannot do it.
        """
        assert self._process.stdin is not None
        self._signal(signal.SIGCONT)
        try:
            self._process.stdin.write(json.dumps(asdict(order)) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise EngineFailed(self._last_words()) from None
        answer = self._answer()
        self._signal(signal.SIGSTOP)
        if "refused" in answer:
            raise OrderRefused(str(answer["refused"]))
        return float(answer["seconds"])

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
                raise EngineFailed(f"no answer within {PATIENCE_S:.0f} s")
        line = self._process.stdout.readline()
        if not line:
            raise EngineFailed(self._last_words())
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
