"""`DrivenEngine`: an engine in a separate process that runs a benchmark's orders (`benchmarks/drivers`)."""

from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.driven_process import DrivenProcess
from benchmarks.drivers.orders import Order

DRIVERS = Path(__file__).parent / "drivers"
OURS = DRIVERS / "pravaha_driver.py"


class OrderRefused(Exception):
    """The engine cannot run this order but keeps running; the message says why."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """How to start an engine.

    Attributes:
        script: its driver.
        python: the interpreter with the engine installed.
        model: path of the model in the engine's format.
        flags: further arguments of the driver.
        label: suffix of the engine's name, if it runs in several configurations.
    """

    script: Path
    python: Path
    model: Path
    flags: tuple[str, ...] = ()
    label: str = ""

    @property
    def display_name(self) -> str:
        """Name used in messages before the engine has reported its own."""
        return f"{self.script.stem.removesuffix('_driver')} {self.model.name}{self.label}"

    @property
    def missing(self) -> Path | None:
        """The interpreter or the model if it does not exist, else None."""
        return next((path for path in (self.python, self.model) if not path.exists()), None)


class DrivenEngine(DrivenProcess):
    """A started engine.

    Attributes:
        recipe: how it was started.
        name: engine, weight format and label, as printed.
    """

    def __init__(self, recipe: Recipe, *, threads: int) -> None:
        """Start the engine and wait until its model is loaded.

        Raises:
            ProcessFailed: the process exited or timed out.
        """
        flags = ("--model", recipe.model, "--threads", str(threads), *recipe.flags)
        super().__init__([recipe.python, recipe.script, *flags])
        self.recipe = recipe
        self.name = f"{self.hello['engine']} {self.hello['weights']}{recipe.label}"

    def run(self, order: Order) -> float:
        """Run an order; returns its duration in seconds.

        Raises:
            ProcessFailed: the process exited or timed out.
            OrderRefused: the engine cannot run the order.
        """
        answer = self.ask(asdict(order))
        if "refused" in answer:
            raise OrderRefused(str(answer["refused"]))
        return float(answer["seconds"])
