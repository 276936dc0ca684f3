"""Compares Pravāha with other engines on one GGUF file, such as a trained model's, interleaved.

    python benchmarks/trained.py --dir DIR --model FILE [--json FILE] [--peers llama_cpp,mistralrs]
        [--columns 1x128,prefill512] [--rounds N] [--minutes M] [--missing] [--baseline CHECKOUT]
    python benchmarks/trained.py --table FILE

DIR is that of `benchmarks/peers_setup.sh DIR`. llama.cpp, mistral.rs and OpenVINO GenAI read the same file;
one that is not installed, or cannot read the file, is skipped by name. llama.cpp decodes without flash
attention and computes prompts with it, which is faster; OpenVINO takes minutes to convert a file.

Columns are those of `format_columns.py`: `SxC` decodes S streams with C tokens of context each, `prefillN`
computes a prompt. Every engine computes the prompts of a column once: at 8,192 tokens that takes minutes, so
`4x8192` has to be asked for. `--baseline` adds another built checkout of Pravāha, which is in the table but
not in the ratios. The result is written after every round; `--missing` leaves out columns that FILE has.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.driven_engine import Recipe
from benchmarks.format_columns import DECODE, PREFILL
from benchmarks.format_parts import (
    FormatPart,
    add_options,
    begin,
    earlier_parts,
    missing_columns,
    parse_options,
)
from benchmarks.format_tables import tables
from benchmarks.recipes import our_recipe, peer_recipe

PEERS = ("llama_cpp", "mistralrs", "openvino")
COLUMNS = ("1x128", "4x128", "16x128", "64x128", "1x8192", "prefill512", "prefill4096")
ON_REQUEST = ("4x8192",)
FLAGS = ("--prefix-caching", "--max-tokens", "8448", "--kv-tokens", "40960")
"""Options of every engine's driver."""
GROUPS = {
    tuple(DECODE): ("--flash-attention", "off"),
    tuple(PREFILL): ("--flash-attention", "on"),
}
"""Columns that are measured with the same processes → llama.cpp's faster setting for them."""
NEW_TOKENS = 32
ROUNDS = 3


class Part(FormatPart):
    """One file, with the peers that were asked for."""

    def __init__(self, options: argparse.Namespace) -> None:
        """Nothing is measured yet."""
        self._peer_names: Sequence[str] = options.peers
        model: Path = options.model.resolve()
        super().__init__(
            model.stem, "gguf", model, options, flags=FLAGS, new_tokens=NEW_TOKENS, rounds=ROUNDS
        )

    def measure(self, columns: Sequence[str], until: float) -> None:
        """Measure columns."""
        for group, flags in GROUPS.items():
            wanted = [column for column in columns if column in group]
            if wanted and not self._measure_columns(wanted, self._recipes(flags), until):
                raise SystemExit("Pravāha did not start: nothing is measured.")

    def _recipes(self, flags: Sequence[str]) -> list[Recipe]:
        peers = [
            peer_recipe(peer, self._options.dir, self._model, *FLAGS, *flags)
            for peer in self._peer_names
        ]
        return [*self._with_baseline(our_recipe(self._model, *FLAGS)), *peers]


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_options(parser, {"--peers": PEERS, "--columns": (*COLUMNS, *ON_REQUEST)})
    parser.set_defaults(columns=[*COLUMNS])
    parser.add_argument("--model", type=Path, help="the GGUF file")
    options = parse_options(parser)
    if options.table is None and (options.model is None or not options.model.is_file()):
        parser.error("--model must be a GGUF file")
    return options


def main() -> None:
    options = parse()
    if options.table:
        print(tables(earlier_parts(options.table)))
        return
    until = begin(options)
    part = Part(options)
    columns = options.columns
    if options.missing:
        columns = missing_columns(columns, options.model.stem, "gguf", options.json)
    part.measure(columns, until)
    print(tables([part.result]))


if __name__ == "__main__":
    main()
