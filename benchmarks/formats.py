"""Compares Pravāha with other engines on larger models in llama.cpp's own formats, interleaved.

    python benchmarks/formats.py --dir DIR [--json FILE] [--shapes 1B] [--formats q4_k_m,q8_0]
        [--columns memory,1x128] [--rounds N] [--minutes M] [--missing] [--mapped] [--baseline CHECKOUT]
    python benchmarks/formats.py --table FILE

A model has the shape of Llama 3.2 1B or 3B and random weights. It is written as F16 and quantized by
llama.cpp's own quantizer (`DIR/llama_cpp`), once per format, in `--cache`; ours and llama.cpp read the
same file. OpenVINO runs beside the formats of `OPENVINO`, in its own export of the same weights.

Columns: `memory` (`held_memory.py`), `SxC` and `prefillN` (`format_columns.py`); `load_time.py` measures
the time to load. A round is one sample of every engine; by default there are three at 1B, two at 3B, and
one at 4,096 tokens. Every shape in every format is a part of the result. The result is written after every
round, and parts are appended to those that FILE has: a run that was cut keeps its finished rounds.
`--missing` leaves out columns that FILE has. `--table` prints the newest figures of each column as Markdown.

`--mapped` maps our weights from the weight cache, as from the second start on. `--baseline` adds another
built checkout of Pravāha, which is in the table but not in the ratios.
"""

import argparse
import json
import signal
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.driven_engine import OURS, Recipe
from benchmarks.driven_process import ProcessFailed
from benchmarks.engine_turns import start, versions
from benchmarks.format_columns import BASELINE, DECODE, PREFILL, FormatColumns
from benchmarks.format_tables import tables
from benchmarks.held_memory import held_memory, keep_packed_weights
from benchmarks.machine import say, with_origin, write_result
from benchmarks.names_option import names_among
from benchmarks.recipes import our_recipe, peer_recipe
from benchmarks.shape_files import exported, quantized
from benchmarks.synthetic_models import LLAMA_SHAPES, Shape
from engine.files.cache_dir import cache_dir

FORMATS = ("q4_k_m", "q5_k_m", "q6_k", "q8_0")
OPENVINO = {("1B", "q4_k_m"): "int4", ("1B", "q8_0"): "int8"}
"""Shape and format → OpenVINO's format with about as many bits."""
COLUMNS = ("memory", *DECODE, *PREFILL)
GROUPS = {
    tuple(DECODE): ("--flash-attention", "off"),
    tuple(PREFILL): ("--flash-attention", "on"),
}
"""Columns that are measured with the same processes → llama.cpp's faster setting for them."""
NEW_TOKENS = {"1B": 32, "3B": 16}
ROUNDS = {"1B": 3, "3B": 2}
LONG_CONTEXT = 4096
"""Where one round is the default, since the prompts take minutes."""
FLAGS = ("--prefix-caching", "--max-tokens", "4352")


class Part:
    """One shape in one format, measured by one command."""

    def __init__(self, name: str, file_type: str, options: argparse.Namespace) -> None:
        """Prepare it, and make its file if it does not exist."""
        self._options = options
        self._model = quantized(LLAMA_SHAPES[name], file_type, options.dir, options.cache)
        self._export = self._exported(LLAMA_SHAPES[name], OPENVINO.get((name, file_type)))
        self._earlier = earlier_parts(options.json)
        self._new_tokens = NEW_TOKENS[name]
        self.result: dict[str, Any] = {
            "shape": name,
            "format": file_type,
            "file_bytes": self._model.stat().st_size,
            "new_tokens": self._new_tokens,
            "columns": {},
        }

    def _exported(self, shape: Shape, weights: str | None) -> Path | None:
        if weights is None:
            return None
        try:
            return exported(shape, weights, self._options.dir, self._options.cache)
        except ProcessFailed as reason:
            say(f"OpenVINO is skipped: {reason}")
            return None

    def measure(self, columns: list[str], until: float) -> None:
        """Measure columns."""
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=self._options.cache)))
            mapped = our_recipe(
                self._model, *FLAGS, "--weight-cache", str(folder), label=", weights mapped"
            )
            if "memory" in columns or self._options.mapped:
                keep_packed_weights(mapped, self._options.threads, folder)
            if "memory" in columns:
                self._measure_memory(mapped)
            for group, flags in GROUPS.items():
                if wanted := [column for column in columns if column in group]:
                    self._measure_columns(wanted, mapped, self._peers(*flags), until)

    def _peers(self, *flags: str) -> list[Recipe]:
        """The peers, llama.cpp first, with further flags of its driver."""
        peers = [peer_recipe("llama_cpp", self._options.dir, self._model, *FLAGS, *flags)]
        if self._export is not None:
            peers.append(peer_recipe("openvino", self._options.dir, self._export, *FLAGS))
        return peers

    def _measure_memory(self, mapped: Recipe) -> None:
        llama_cpp, *others = self._peers()
        unmapped = replace(llama_cpp, flags=(*llama_cpp.flags, "--no-mmap"), label=", without mmap")
        self.result["columns"]["memory"] = held_memory(
            [our_recipe(self._model, *FLAGS), mapped, llama_cpp, unmapped, *others],
            self._options.threads,
        )
        self._save()

    def _measure_columns(
        self, columns: list[str], mapped: Recipe, peers: list[Recipe], until: float
    ) -> None:
        options = self._options
        recipes = [mapped if options.mapped else our_recipe(self._model, *FLAGS)]
        if options.baseline:
            driver = options.baseline.resolve() / OURS.relative_to(OURS.parents[2])
            recipes.append(Recipe(driver, Path(sys.executable), self._model, FLAGS, BASELINE))
        with ExitStack() as stack:
            engines = start(stack, [*recipes, *peers], options.threads)
            if not engines or engines[0].recipe is not recipes[0]:
                raise SystemExit("Pravāha did not start: nothing is measured.")
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
                options.threads,
                self._new_tokens,
                self._rounds,
                until,
                save,
            )
            measured.measure(columns)

    def _rounds(self, context: int) -> int:
        default = 1 if context >= LONG_CONTEXT else ROUNDS[self.result["shape"]]
        return self._options.rounds or default

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


def missing_columns(columns: list[str], name: str, file_type: str, path: Path | None) -> list[str]:
    """The columns that a result file does not have for a shape and format."""
    found: set[str] = set()
    for part in earlier_parts(path):
        if (part["shape"], part["format"]) == (name, file_type):
            found |= part["columns"].keys()
    return [column for column in columns if column not in found]


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dir", type=Path, help="directory of the peers")
    for flag, known in (
        ("--shapes", LLAMA_SHAPES),
        ("--formats", FORMATS),
        ("--columns", COLUMNS),
    ):
        parser.add_argument(
            flag,
            type=names_among(known),
            default=[*known],
            help=f"of {', '.join(known)} (default all)",
        )
    parser.add_argument("--rounds", type=int, help="samples of each column")
    parser.add_argument("--minutes", type=float, help="begin no round that would end later")
    parser.add_argument("--missing", action="store_true", help="only columns that --json lacks")
    parser.add_argument("--mapped", action="store_true", help="map our weights from a cache")
    parser.add_argument("--threads", type=int, default=2, help="threads of every engine")
    parser.add_argument("--baseline", type=Path, help="another checkout of Pravāha")
    parser.add_argument("--cache", type=Path, help="directory of the synthetic models")
    parser.add_argument("--json", type=Path, metavar="FILE", help="append the result to FILE")
    parser.add_argument("--table", type=Path, metavar="FILE", help="print a result and exit")
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


def main() -> None:
    options = parse()
    if options.table:
        print(tables(earlier_parts(options.table)))
        return
    options.dir = options.dir.resolve()
    options.cache = options.cache or cache_dir() / "synthetic"
    # So that a run that is cut ends its engines and removes the packed weights.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
    until = time.monotonic() + 60 * options.minutes if options.minutes else float("inf")
    measured = []
    for name in options.shapes:
        for file_type in options.formats:
            columns = options.columns
            if options.missing:
                columns = missing_columns(columns, name, file_type, options.json)
            if columns and time.monotonic() < until:
                part = Part(name, file_type, options)
                part.measure(columns, until)
                measured.append(part.result)
    print(tables(measured))


if __name__ == "__main__":
    main()
