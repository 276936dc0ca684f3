"""Compares builds of the native core, interleaved, on machines whose speed varies.

    python benchmarks/versions.py --model FILE OLD.so NEW.so [...] [--rows 64] [--prefill 512]
        [--prompts 8] [--context 96] [--longest 7600] [--turns 20]

Every build runs in its own process, which is stopped while another one runs. A turn runs every shape of
`step_shapes.py` for a fraction of a second and records its fastest step and phases. Prints the minimum over
all turns, and the median over the turns of the ratio to the first build, which noisy neighbours affect
little. `cargo build --release -p pravaha-py` writes a build to `target/release/lib_core.so`; copy it
before the next build.
"""

import argparse
import importlib.machinery
import importlib.util
import json
import statistics
import sys
from contextlib import ExitStack
from pathlib import Path

from benchmarks.driven_process import DrivenProcess, ProcessFailed

Turn = dict[str, dict[str, float]]
"""Shape → phase (or `step`) → minimum duration in milliseconds."""

STEP = "step"
CHILD = "--child"
"""First argument of a build's process; the second is the path of the build."""


class Build(DrivenProcess):
    """A build of the extension in its process.

    Attributes:
        name: name of its file.
        turns: results of its turns so far.
    """

    def __init__(self, path: Path, flags: list[str]) -> None:
        super().__init__(
            [sys.executable, "-m", "benchmarks.versions", CHILD, path.resolve(), *flags]
        )
        self.name = path.stem
        self.turns: list[Turn] = []

    def take_turn(self) -> None:
        """Run every shape for one turn."""
        self.turns.append(self.ask("turn"))

    def least(self, shape: str, phase: str) -> float:
        """The minimum over all turns."""
        return min(turn[shape][phase] for turn in self.turns)

    def ratio(self, first: "Build", shape: str, phase: str) -> float:
        """The median over the turns of the ratio to the first build."""
        pairs = zip(self.turns, first.turns, strict=True)
        return statistics.median(a[shape][phase] / max(b[shape][phase], 1e-9) for a, b in pairs)


def use_build(path: str) -> None:
    """Load a build as the `engine._core` of this process."""
    name = "engine._core"
    loader = importlib.machinery.ExtensionFileLoader(name, path)
    spec = importlib.util.spec_from_file_location(name, path, loader=loader)
    assert spec is not None
    sys.modules[name] = importlib.util.module_from_spec(spec)
    loader.exec_module(sys.modules[name])


def take_turns(args: argparse.Namespace) -> None:
    """Run a turn for every line on standard input."""
    from benchmarks import step_shapes as steps

    shapes = steps.shapes_of(args)
    executor, model = steps.load_executor(args.model, shapes)
    plans = [steps.plan_of(shape, model.vocab_size) for shape in shapes]
    print(json.dumps({"ready": True}), flush=True)
    for _ in sys.stdin:
        turn: Turn = {}
        for shape, plan in zip(shapes, plans, strict=True):
            shape.seconds, shape.phases = float("inf"), {}
            steps.run_for(executor, shape, plan, steps.TURN_S)
            seconds = {STEP: shape.seconds, **shape.phases}
            turn[shape.name] = {phase: 1e3 * taken for phase, taken in seconds.items()}
        print(json.dumps(turn), flush=True)


def main() -> None:
    """Measure and print."""
    flags = sys.argv[1:]
    child = flags[:1] == [CHILD]
    if child:
        use_build(flags[1])
        flags = flags[2:]
    # Imported here: the import loads the installed build unless `use_build` was called before.
    from benchmarks.step_shapes import add_shapes

    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "builds", type=Path, nargs="+", metavar="BUILD.so", help="builds of the extension module"
    )
    parser.add_argument("--model", type=Path, required=True, help="GGUF file or model directory")
    parser.add_argument("--turns", type=int, default=20, help="turns of each build")
    add_shapes(parser, [64])
    args = parser.parse_args(flags)
    if child:
        take_turns(args)
        return
    for path in (args.model, *args.builds):
        if not path.exists():
            parser.error(f"{path} does not exist")
    with ExitStack() as stack:
        try:
            builds = [stack.enter_context(Build(path, flags)) for path in args.builds]
            for turn in range(args.turns):
                for build in builds if turn % 2 == 0 else reversed(builds):
                    build.take_turn()
        except ProcessFailed as reason:
            raise SystemExit(f"a build's process ended: {reason}") from None
    first = builds[0]
    print("ms (ratio)".ljust(22) + "".join(build.name.rjust(20) for build in builds))
    for shape, phases in first.turns[0].items():
        for phase in phases:
            cells = (
                f"{build.least(shape, phase):.2f} ({build.ratio(first, shape, phase):.3f})"
                for build in builds
            )
            print(f"{shape}, {phase}".ljust(22) + "".join(cell.rjust(20) for cell in cells))


if __name__ == "__main__":
    main()
