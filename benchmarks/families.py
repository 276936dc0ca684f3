"""Compares Pravāha with llama.cpp on the shapes of several families, interleaved: speed and roofline.

    python benchmarks/families.py --dir DIR [--json FILE] [--shapes qwen3.5-0.8b,lfm2-1.2b] [--columns 1x128]
        [--rounds N] [--new-tokens N] [--minutes M] [--missing] [--discard] [--baseline CHECKOUT]
    python benchmarks/families.py --table FILE

DIR is that of `benchmarks/peers_setup.sh DIR llama_cpp`. The files have the sizes of `family_shapes.py` and
random weights, in Q4_K_M by llama.cpp's own quantizer (gpt-oss in MXFP4), in `--cache`; both engines read the
same file. `llama-1b` is the dense shape of `formats.py`. All files take 24 GB, and while one is made it is
there in Q8_0, too; with `--discard` each is deleted when it was measured, and 14 GB are enough. Measuring
needs twice the file in memory.

Columns are those of `format_columns.py`: `SxC` decodes S streams with C tokens of context each, `prefill512`
computes a prompt. llama.cpp decodes without flash attention and computes prompts with it, which is faster.
*Of the roofline* is that of the work in `family_work.py`; for one stream the bandwidth is what bounds it.
The second table has the ratios and shares beside the goals.

The result is written after every round, and parts are appended to those that FILE has. `--missing` leaves
out columns that FILE has. `--table` prints the newest figures of each column as Markdown. `--baseline` adds
another built checkout of Pravāha, which is in the table but not in the ratios.
"""

import argparse
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.driven_engine import DrivenEngine, Recipe
from benchmarks.family_files import family_file
from benchmarks.family_shapes import FAMILY_SHAPES
from benchmarks.family_work import FamilyWork
from benchmarks.format_columns import DECODE
from benchmarks.format_parts import (
    FLAGS,
    FormatPart,
    add_options,
    begin,
    earlier_parts,
    missing_columns,
    parse_options,
)
from benchmarks.format_tables import HEADINGS, markdown, newest, tables
from benchmarks.machine import say
from benchmarks.recipes import our_recipe, peer_recipe
from benchmarks.shape_files import quantized
from benchmarks.synthetic_models import LLAMA_SHAPES

LLAMA = "llama-1b"
SHAPES = (*FAMILY_SHAPES, LLAMA)
DECODED = ("1x128", "4x128", "16x128", "1x4096")
COLUMNS = (*DECODED, "prefill512")
GROUPS = (
    (DECODED, ("--flash-attention", "off")),
    (("prefill512",), ("--flash-attention", "on")),
)
"""Columns that are measured with the same processes, and llama.cpp's faster setting for them."""
NEW_TOKENS = 32
ROUNDS = 3


@dataclass(frozen=True, slots=True)
class Goal:
    """What a shape is meant to reach: ratios to llama.cpp, and a share of the roofline for one stream."""

    single: float
    many: float
    prefill: float
    share: float

    def ratio(self, column: str) -> float:
        """The goal of a column's ratio."""
        if column not in DECODE:
            return self.prefill
        return self.single if DECODE[column][0] == 1 else self.many


HYBRID = Goal(2.5, 3.0, 3.0, 0.75)
SMALL = Goal(1.5, 3.0, 2.5, 0.75)
EXPERTS = Goal(1.5, 2.0, 2.0, 0.70)
GOALS = {
    "qwen3.5-0.8b": HYBRID,
    "qwen3.5-4b": HYBRID,
    "lfm2-1.2b": SMALL,
    "gemma3-1b": SMALL,
    "gemma4-e2b": SMALL,
    "olmoe-7b-a1b": EXPERTS,
    "lfm2-8b-a1b": EXPERTS,
    "gpt-oss-6-layers": EXPERTS,
}


class Part(FormatPart):
    """A part whose roofline is that of the shape's work."""

    def __init__(self, name: str, options: argparse.Namespace) -> None:
        """Prepare it, and make its file if it does not exist."""
        self._shape = FAMILY_SHAPES.get(name)
        if self._shape is None:
            model = quantized(LLAMA_SHAPES["1B"], "q4_k_m", options.dir, options.cache)
        else:
            model = family_file(name, self._shape, options.dir, options.cache)
        super().__init__(
            name, file_type(name), model, options, new_tokens=options.new_tokens, rounds=ROUNDS
        )

    def measure(self, columns: Sequence[str], until: float) -> None:
        """Measure columns."""
        for group, flags in GROUPS:
            wanted = [column for column in columns if column in group]
            if wanted and not self._measure_columns(wanted, self._recipes(flags), until):
                say(f"{self.result['shape']} is skipped: Pravāha did not start")

    def discard(self) -> None:
        """Delete its file."""
        self._model.unlink()

    def _recipes(self, flags: Sequence[str]) -> list[Recipe]:
        """Ours first, llama.cpp last."""
        ours = our_recipe(self._model, *FLAGS)
        peer = peer_recipe("llama_cpp", self._options.dir, self._model, *FLAGS, *flags)
        return [*self._with_baseline(ours), peer]

    def _work(self, ours: DrivenEngine) -> FamilyWork | None:
        if self._shape is None:
            return None
        weight_bytes = int(self.result["packed_bytes"])
        return FamilyWork.of(self._shape, self._model, weight_bytes, ours.hello["kv_dtype"])


def file_type(name: str) -> str:
    """llama.cpp's name of the format of a shape's file."""
    return FAMILY_SHAPES[name].file_type if name in FAMILY_SHAPES else "q4_k_m"


def goal_table(parts: Sequence[Mapping[str, Any]]) -> list[str]:
    """The best ratios and shares beside their goals; one that is missed is in bold."""
    rows = []
    for part in newest(parts):
        goal = GOALS.get(part["shape"])
        measured = [name for name in COLUMNS if name in part["columns"]]
        if goal is None or not measured:
            continue
        cells = []
        for name in COLUMNS:
            figures = part["columns"].get(name, {})
            reached = [beside(figures.get("ratio_to_best_peer"), goal.ratio(name), "{:.2f}")]
            if name in DECODE and DECODE[name][0] == 1:
                reached.append(beside(figures.get("share_of_roofline"), goal.share, "{:.0%}"))
            cells.append(", ".join(reached))
        rows.append([part["shape"], *cells])
    return markdown(["", *(HEADINGS[name] for name in COLUMNS)], rows) if rows else []


def beside(figures: Mapping[str, float] | None, goal: float, shown: str) -> str:
    """The best figure and its goal."""
    best = (figures or {}).get("best")
    if best is None:
        return f"– / {shown.format(goal)}"
    text = shown.format(best)
    return f"{text if best >= goal else f'**{text}**'} / {shown.format(goal)}"


def report(parts: Sequence[Mapping[str, Any]]) -> str:
    """All tables as Markdown."""
    return "\n\n".join(filter(None, [tables(parts), "\n".join(goal_table(parts))]))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_options(parser, {"--shapes": SHAPES, "--columns": COLUMNS})
    parser.add_argument(
        "--new-tokens", type=int, default=NEW_TOKENS, help="of a stream, in a long run"
    )
    parser.add_argument("--discard", action="store_true", help="delete files that were measured")
    options = parse_options(parser)
    if options.new_tokens < 1:
        parser.error("--new-tokens must be at least 1")
    return options


def main() -> None:
    options = parse()
    if options.table:
        print(report(earlier_parts(options.table)))
        return
    until = begin(options)
    measured = []
    for name in options.shapes:
        columns = options.columns
        if options.missing:
            columns = missing_columns(columns, name, file_type(name), options.json)
        if columns and time.monotonic() < until:
            part = Part(name, options)
            part.measure(columns, until)
            measured.append(part.result)
            if options.discard:
                part.discard()
    print(report(measured))


if __name__ == "__main__":
    main()
