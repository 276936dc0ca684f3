"""The processes of `benchmarks/retrieval.py`: ours, and one for each peer in its environment."""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from benchmarks.driven_process import DrivenProcess, ProcessFailed
from benchmarks.machine import say

DRIVERS = Path(__file__).parent / "drivers" / "retrieval"
Recipe = tuple[str, str]
"""Driver and weights."""
OURS: Recipe = ("pravaha", "f32")
OURS_INT8: Recipe = ("pravaha", "int8")
SEARCHING: tuple[Recipe, ...] = tuple(
    (driver, "f32") for driver in ("faiss", "chroma", "txtai", "lancedb", "llama_index")
)
"""Peers that index and search."""
EMBEDDING: dict[str, Recipe] = {
    "Pravāha": OURS,
    "Pravāha int8": OURS_INT8,
    "sentence-transformers": ("faiss", "f32"),
    "ONNX Runtime f32": ("onnxruntime", "f32"),
    "ONNX Runtime int8": ("onnxruntime", "int8"),
    "OpenVINO f32": ("openvino", "f32"),
    "OpenVINO int8": ("openvino", "int8"),
}
"""What embeds, by name."""


class Refused(Exception):
    """The peer does not do this; the message names it."""


class RetrievalProcess(DrivenProcess):
    """A peer's process, stopped between calls.

    Attributes:
        peer: its name, as printed.
        version: versions of its packages.
        modes: how it searches.
    """

    def __init__(self, recipe: Recipe, *, python: Path, models: Path, threads: int) -> None:
        """Start the process and wait until its model is loaded.

        Raises:
            ProcessFailed: it exited or timed out.
        """
        driver, weights = recipe
        script = DRIVERS / f"{driver}_peer.py"
        flags = ("--models", models, "--threads", str(threads), "--weights", weights)
        super().__init__([python, script, *flags])
        self.peer, self.version = str(self.hello["peer"]), str(self.hello["version"])
        self.modes = tuple(self.hello["modes"])

    def call(self, name: str, **arguments: Any) -> dict[str, Any]:
        """Call a method; returns its answer.

        Raises:
            Refused: the peer lacks the method.
            ProcessFailed: the process exited or timed out.
        """
        answer = self.ask({"call": name, **arguments})
        if "refused" in answer:
            raise Refused(answer["refused"])
        return answer


class Peers:
    """Starts processes on first use and ends them all. A peer that fails is skipped with a message.

    Attributes:
        failed: driver → why it is skipped.
    """

    def __init__(self, directory: Path, threads: int) -> None:
        """Nothing is started yet.

        Args:
            directory: what `peers_setup.sh` wrote.
        """
        self._directory, self._threads = directory, threads
        self._stack = ExitStack()
        self._started: dict[Recipe, RetrievalProcess] = {}
        self.failed: dict[str, str] = {}

    def __enter__(self) -> "Peers":
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def started(self, recipe: Recipe) -> RetrievalProcess | None:
        """The process of a recipe; None if its driver failed before. Our own must not fail."""
        driver = recipe[0]
        if driver in self.failed:
            return None
        if recipe not in self._started:
            own = self._directory / "retrieval" / "bin" / "python"
            python = Path(sys.executable) if driver == OURS[0] else own
            if not python.exists():
                self.skip(driver, "it is not installed")
                return None
            say(f"starting {' '.join(recipe)}")
            models = self._directory / "models"
            try:
                process = RetrievalProcess(
                    recipe, python=python, models=models, threads=self._threads
                )
            except ProcessFailed as reason:
                self._skip_peer(driver, reason)
                return None
            self._started[recipe] = self._stack.enter_context(process)
        return self._started[recipe]

    def skip(self, driver: str, reason: str) -> None:
        """Use a peer no more."""
        say(f"{driver} is skipped: {reason}")
        self.failed[driver] = reason

    def turns(
        self, recipes: Iterable[Recipe], run: Callable[[RetrievalProcess], None], turn: int = 0
    ) -> None:
        """Run something with each peer, in an order that rotates by turn."""
        order = list(recipes)
        at = turn % max(1, len(order))
        for recipe in order[at:] + order[:at]:
            process = self.started(recipe)
            if process is None:
                continue
            try:
                run(process)
            except Refused:
                continue
            except ProcessFailed as reason:
                self._skip_peer(recipe[0], reason)

    def _skip_peer(self, driver: str, reason: ProcessFailed) -> None:
        if driver == OURS[0]:
            raise reason
        self.skip(driver, str(reason))

    def versions(self) -> Iterator[tuple[str, str]]:
        """Names and versions of the peers that were started."""
        for process in self._started.values():
            yield process.peer, process.version
