"""What `formats.py`, `families.py` and `trained.py` have in common: the parts of a result, and the options.

A *part* is what one command has measured of one file. The result is written after every round, and parts
are appended to those that the result file has: a run that was cut keeps its finished rounds.
"""

import argparse
import json
import signal
import sys
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from benchmarks.driven_engine import OURS, DrivenEngine, Recipe
from benchmarks.engine_turns import start, versions
from benchmarks.format_columns import BASELINE, FormatColumns, Work
from benchmarks.machine import with_origin, write_result
from benchmarks.names_option import names_among
from engine.files.cache_dir import cache_dir

FLAGS = ("--prefix-caching", "--max-tokens", "4352")
"""Options of every engine's driver."""
LONG_CONTEXT = 4096
"""Where one round is the default, since the prompts take minutes."""


class FormatPart:
    """One shape in one format, measured by one command.

    Attributes:
        result: the part so far, as plain data.
    """

    def __init__(
        self,
        shape: str,
        file_type: str,
        model: Path,
        options: argparse.Namespace,
        *,
        new_tokens: int,
        rounds: int,
        flags: tuple[str, ...] = FLAGS,
    ) -> None:
        """Nothing is measured yet.

        Args:
            shape: its name.
            file_type: llama.cpp's name of the file's format.
            model: the file.
            options: of the command, see `add_options`.
            new_tokens: of a stream, in a long run.
            rounds: samples of a column with less than `LONG_CONTEXT`, unless an option says how many.
            flags: of every engine's driver.
        """
        self._default_rounds = rounds
        self._options = options
        self._model = model
        self._flags = flags
        self._earlier = earlier_parts(options.json)
        self.result: dict[str, Any] = {
            "shape": shape,
            "format": file_type,
            "file_bytes": model.stat().st_size,
            "new_tokens": new_tokens,
            "columns": {},
        }

    def _with_baseline(self, ours: Recipe) -> list[Recipe]:
        """Our recipe, and the same model in the other checkout if there is one."""
        if not self._options.baseline:
            return [ours]
        driver = self._options.baseline.resolve() / OURS.relative_to(OURS.parents[2])
        return [ours, Recipe(driver, Path(sys.executable), self._model, self._flags, BASELINE)]

    def _measure_columns(
        self, columns: Sequence[str], recipes: Sequence[Recipe], until: float
    ) -> bool:
        """Measure columns; False if our engine, the first of the recipes, does not start."""
        with ExitStack() as stack:
            engines = start(stack, recipes, self._options.threads)
            if not engines or engines[0].recipe is not recipes[0]:
                return False
            self.result["packed_bytes"] = engines[0].hello["work"]["weight_bytes"]
            started = versions(engines)

            def save() -> None:
                found = measured.result()
                for column, figures in found["columns"].items():
                    self.result["columns"][column] = figures | {"engines": started}
                self.result["skipped"] = self.result.get("skipped", {}) | found["skipped"]
                self._save()

            measured = FormatColumns(
                engines,
                self._options.threads,
                self.result["new_tokens"],
                self._rounds,
                until,
                save,
                self._work(engines[0]),
            )
            measured.measure(columns)
        return True

    def _rounds(self, context: int) -> int:
        default = 1 if context >= LONG_CONTEXT else self._default_rounds
        rounds: int = self._options.rounds or default
        return rounds

    def _work(self, ours: DrivenEngine) -> Work | None:
        """The work of our engine's steps; None for what it says itself."""
        return None

    def _save(self) -> None:
        if self._options.json:
            part = with_origin(self.result | {"threads": self._options.threads})
            write_result(self._options.json, {"parts": [*self._earlier, part]})


def earlier_parts(path: Path | None) -> list[dict[str, Any]]:
    """The parts that a result file has; none if there is no file."""
    if path is None or not path.exists():
        return []
    result = json.loads(path.read_text())
    if "parts" not in result:
        raise SystemExit(f"{path} is no result of this script: it has no parts.")
    parts: list[dict[str, Any]] = result["parts"]
    return parts


def missing_columns(
    columns: Sequence[str], name: str, file_type: str, path: Path | None
) -> list[str]:
    """The columns that a result file does not have for a shape and format."""
    found: set[str] = set()
    for part in earlier_parts(path):
        if (part["shape"], part["format"]) == (name, file_type):
            found |= part["columns"].keys()
    return [column for column in columns if column not in found]


def add_options(parser: argparse.ArgumentParser, lists: Mapping[str, Collection[str]]) -> None:
    """Add the options; `lists` are those with names, all of which are the default."""
    parser.add_argument("--dir", type=Path, help="directory of the peers")
    for flag, known in lists.items():
        parser.add_argument(
            flag,
            type=names_among(known),
            default=[*known],
            help=f"of {', '.join(known)} (default all)",
        )
    parser.add_argument("--rounds", type=int, help="samples of each column")
    parser.add_argument("--minutes", type=float, help="begin no round that would end later")
    parser.add_argument("--missing", action="store_true", help="only columns that --json lacks")
    parser.add_argument("--threads", type=int, default=2, help="threads of every engine")
    parser.add_argument("--baseline", type=Path, help="another checkout of Pravāha")
    parser.add_argument("--cache", type=Path, help="directory of the synthetic models")
    parser.add_argument("--json", type=Path, metavar="FILE", help="append the result to FILE")
    parser.add_argument("--table", type=Path, metavar="FILE", help="print a result and exit")


def parse_options(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """The options of the command, checked."""
    options = parser.parse_args()
    if options.table is None and options.dir is None:
        parser.error("--dir is required, unless --table is given")
    if options.table is not None and not options.table.exists():
        parser.error(f"--table: {options.table} does not exist")
    if options.missing and options.json is None:
        parser.error("--missing needs --json")
    if min(options.rounds or 1, options.threads) < 1:
        parser.error("--rounds and --threads must be at least 1")
    return options


def begin(options: argparse.Namespace) -> float:
    """Prepare a run: its directories, and that it ends its engines if it is cut.

    Returns:
        The instant of the monotonic clock by which rounds should have ended.
    """
    options.dir = options.dir.resolve()
    options.cache = options.cache or cache_dir() / "synthetic"
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
    return time.monotonic() + 60 * options.minutes if options.minutes else float("inf")
