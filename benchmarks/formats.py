"""Compares Pravāha with llama.cpp on larger models in llama.cpp's own formats, interleaved.

    python benchmarks/formats.py --dir DIR [--shapes 1B] [--formats q4_k_m] [--columns single,4]
        [--rounds 3] [--baseline CHECKOUT] [--json FILE]

A model has the shape of Llama 3.2 1B or 3B and random weights. It is written as F16 and quantized by
llama.cpp's own quantizer (`DIR/llama_cpp`), once per format, in `--cache`; both engines read the same file.
Columns are those of `peers.py` with 128 prompt and 32 new tokens per stream and 64 new tokens of *single*:
4 streams are a prefill of 512 tokens. `--baseline` adds another built checkout of Pravāha, which is in
the table but not in the ratios. Also printed and kept: the sizes of the file and of our packed weights.
"""

import argparse
import subprocess
import sys
from pathlib import Path
from typing import Any

from rich.console import Console

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.comparison import ComparedEngine, Comparison, print_table
from benchmarks.driven_engine import OURS, Recipe
from benchmarks.machine import say, write_result
from benchmarks.measurements import Lengths
from benchmarks.recipes import DEMO, our_recipe, peer_recipe
from benchmarks.synthetic_models import LLAMA_SHAPES, Shape, synthetic_model
from engine.files.cache_dir import cache_dir

FORMATS = ("q4_k_m", "q5_k_m", "q6_k", "q8_0")
LENGTHS = Lengths(single=64, prompt=128, new=32)
QUANTIZER = Path(__file__).parent / "peer_models" / "llama_cpp_quantized.py"


def quantized(shape: Shape, file_type: str, directory: Path, cache: Path) -> Path:
    """The shape's file in a format, made if it does not exist."""
    target = cache / f"synthetic-{shape.family}-{shape.name}-{file_type}.gguf"
    if not target.exists():
        say(f"creating {target.name}")
        source = synthetic_model(shape, directory / "models" / DEMO, cache, "f16")
        python = directory / "llama_cpp" / "bin" / "python"
        subprocess.run([python, QUANTIZER, source, target, file_type], check=True)
    return target


def compare(model: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Run both engines, and the baseline if there is one, on one file."""
    compared = [ComparedEngine(our_recipe(model))]
    if options.baseline:
        driver = options.baseline.resolve() / OURS.relative_to(OURS.parents[2])
        baseline = Recipe(driver, Path(sys.executable), model, label=", baseline")
        compared.append(ComparedEngine(baseline, rated=False))
    peer = peer_recipe("llama_cpp", options.dir, model)
    compared.append(ComparedEngine(peer, "llama_cpp"))
    with Comparison(
        compared, options.columns, threads=options.threads, lengths=LENGTHS
    ) as comparison:
        rounds = 0
        for rounds in comparison.run(options.rounds, float("inf")):  # noqa: B007 - the last one counts
            pass
        print_table(comparison, options.console)
        result = comparison.result(rounds)
    ours = compared[0].engine
    if ours is not None:
        packed = ours.hello["work"]["weight_bytes"]
        result |= {"file_bytes": model.stat().st_size, "packed_bytes": packed}
        print(f"file {result['file_bytes'] / 1e6:,.0f} MB, packed {packed / 1e6:,.0f} MB")
    return result


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dir", type=Path, required=True, help="directory of the peers")
    parser.add_argument("--shapes", default="1B", help="1B, 3B, separated by commas")
    parser.add_argument("--formats", default="q4_k_m", help=f"of {', '.join(FORMATS)}")
    parser.add_argument("--columns", default="single,4", help="columns; prefill is part of 4")
    parser.add_argument("--rounds", type=int, default=3, help="number of rounds")
    parser.add_argument("--threads", type=int, default=2, help="threads of every engine")
    parser.add_argument("--baseline", type=Path, help="another checkout of Pravāha")
    parser.add_argument("--cache", type=Path, help="directory of the synthetic models")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the result to FILE")
    options = parser.parse_args()
    for field, known in (
        ("shapes", tuple(LLAMA_SHAPES)),
        ("formats", FORMATS),
        ("columns", ("single", "4", "16", "32", "64")),
    ):
        names = [name for name in getattr(options, field).split(",") if name]
        if unknown := sorted(set(names) - set(known)):
            parser.error(f"--{field}: unknown {', '.join(unknown)}; choose from {', '.join(known)}")
        setattr(options, field, names)
    options.dir = options.dir.resolve()
    options.cache = options.cache or cache_dir() / "synthetic"
    options.console = Console(width=None if sys.stdout.isatty() else 160)
    result: dict[str, Any] = {}
    for name in options.shapes:
        for file_type in options.formats:
            model = quantized(LLAMA_SHAPES[name], file_type, options.dir, options.cache)
            print(f"Llama 3.2 {name} shape, {file_type}")
            result[f"{name} {file_type}"] = compare(model, options)
            if options.json:
                write_result(options.json, result)


if __name__ == "__main__":
    main()
