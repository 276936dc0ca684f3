"""An engine in a process of its own that carries out a benchmark's orders (`benchmarks/drivers`)."""

from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.driven_process import DrivenProcess
from benchmarks.drivers.orders import Order

DRIVERS = Path(__file__).parent / "drivers"
OURS = DRIVERS / "pravaha_driver.py"


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


class DrivenEngine(DrivenProcess):
    """A started engine.

    Attributes:
        name: engine, weight format and label, as printed.
    """

    def __init__(self, recipe: Recipe, *, threads: int) -> None:
        """Start it and wait until it is loaded.

        Raises:
            ProcessFailed: it ended or hung before it was ready.
        """
        flags = ("--model", recipe.model, "--threads", str(threads), *recipe.flags)
        super().__init__([recipe.python, recipe.script, *flags])
        self.name = f"{self.hello['engine']} {self.hello['weights']}{recipe.label}"

    def run(self, order: Order) -> float:
        """Seconds that an order took.

        Raises:
            ProcessFailed: the process ended or hung.
            OrderRefused: the engine cannot do it.
        """
        answer = self.ask(asdict(order))
        if "refused" in answer:
            raise OrderRefused(str(answer["refused"]))
        return float(answer["seconds"])
