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
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.driven_engine import Recipe
from benchmarks.driven_process import ProcessFailed
from benchmarks.format_columns import PREFILL
from benchmarks.format_parts import (
    FLAGS,
    FormatPart,
    add_options,
    begin,
    earlier_parts,
    missing_columns,
    parse_options,
)
from benchmarks.format_tables import tables
from benchmarks.held_memory import held_memory, keep_packed_weights
from benchmarks.machine import say
from benchmarks.recipes import our_recipe, peer_recipe
from benchmarks.shape_files import exported, quantized
from benchmarks.synthetic_models import LLAMA_SHAPES, Shape

FORMATS = ("q4_k_m", "q5_k_m", "q6_k", "q8_0")
OPENVINO = {("1B", "q4_k_m"): "int4", ("1B", "q8_0"): "int8"}
"""Shape and format → OpenVINO's format with about as many bits."""
DECODE = ("1x128", "4x128", "16x128", "1x4096")
COLUMNS = ("memory", *DECODE, *PREFILL)
GROUPS = {
    DECODE: ("--flash-attention", "off"),
    tuple(PREFILL): ("--flash-attention", "on"),
}
"""Columns that are measured with the same processes → llama.cpp's faster setting for them."""
NEW_TOKENS = {"1B": 32, "3B": 16}
ROUNDS = {"1B": 3, "3B": 2}


class Part(FormatPart):
    """A part that has the column `memory`, and OpenVINO beside llama.cpp."""

    def __init__(self, name: str, file_type: str, options: argparse.Namespace) -> None:
        """Prepare it, and make its file if it does not exist."""
        model = quantized(LLAMA_SHAPES[name], file_type, options.dir, options.cache)
        super().__init__(
            name, file_type, model, options, new_tokens=NEW_TOKENS[name], rounds=ROUNDS[name]
        )
        self._export = self._exported(LLAMA_SHAPES[name], OPENVINO.get((name, file_type)))

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
                    ours = mapped if self._options.mapped else our_recipe(self._model, *FLAGS)
                    recipes = [*self._with_baseline(ours), *self._peers(*flags)]
                    if not self._measure_columns(wanted, recipes, until):
                        raise SystemExit("Pravāha did not start: nothing is measured.")

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


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_options(parser, {"--shapes": LLAMA_SHAPES, "--formats": FORMATS, "--columns": COLUMNS})
    parser.add_argument("--mapped", action="store_true", help="map our weights from a cache")
    return parse_options(parser)


def main() -> None:
    options = parse()
    if options.table:
        print(tables(earlier_parts(options.table)))
        return
    until = begin(options)
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
