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
GROUPS = {
    tuple(DECODE): ("--flash-attention", "off"),
    tuple(PREFILL): ("--flash-attention", "on"),
}
"""Columns that are measured with the same processes → llama.cpp's faster setting for them."""
NEW_TOKENS = 32
ROUNDS = 3
MARGIN = 256
"""Tokens of a stream beside its context."""


class Part(FormatPart):
    """One file, with the peers that were asked for."""

    def __init__(self, options: argparse.Namespace, columns: Sequence[str]) -> None:
        """Nothing is measured yet; `columns` are those that will be."""
        self._peer_names: Sequence[str] = options.peers
        model: Path = options.model.resolve()
        super().__init__(
            model.stem,
            "gguf",
            model,
            options,
            flags=driver_flags(columns),
            new_tokens=NEW_TOKENS,
            rounds=ROUNDS,
        )

    def measure(self, columns: Sequence[str], until: float) -> None:
        """Measure columns."""
        for group, flags in GROUPS.items():
            wanted = [column for column in columns if column in group]
            if wanted and not self._measure_columns(wanted, self._recipes(flags), until):
                raise SystemExit("Pravāha did not start: nothing is measured.")

    def _recipes(self, flags: Sequence[str]) -> list[Recipe]:
        peers = [
            peer_recipe(peer, self._options.dir, self._model, *self._flags, *flags)
            for peer in self._peer_names
        ]
        return [*self._with_baseline(our_recipe(self._model, *self._flags)), *peers]


def driver_flags(columns: Sequence[str]) -> tuple[str, ...]:
    """Options of every engine's driver: the context that the columns need, and KV tokens of all streams."""
    contexts = [DECODE[one] if one in DECODE else (1, PREFILL[one]) for one in columns]
    room = max((context for _, context in contexts), default=0) + MARGIN
    tokens = max((streams * (context + MARGIN) for streams, context in contexts), default=0)
    return ("--prefix-caching", "--max-tokens", str(room), "--kv-tokens", str(2 * tokens))


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
    columns = options.columns
    if options.missing:
        columns = missing_columns(columns, options.model.stem, "gguf", options.json)
    part = Part(options, columns)
    part.measure(columns, until)
    print(tables([part.result]))


if __name__ == "__main__":
    main()
