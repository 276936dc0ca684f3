"""Compares Pravāha with other engines: same model, same workload, interleaved in one run.

    python benchmarks/peers.py --dir DIR [--peers llama_cpp,openvino] [--rounds 3] [--minutes 25]
        [--json FILE]
    python benchmarks/peers.py --dir DIR --baseline CHECKOUT

DIR contains a virtual environment per peer (`DIR/llama_cpp`, …) and `DIR/models`, created by
`benchmarks/peers_setup.sh`. Every engine is started once per weight format (`recipes.FORMATS`), stays
loaded, and is stopped (SIGSTOP) while another one runs. In each column of a round the engines run one after
another, in an order that rotates by round, so that noisy neighbours affect all engines alike. A peer that is
not installed or fails is skipped with a message. The result is written after every column.

The ratio of a column is over the best peer in its best format, from equally many runs of both
(`peer_ratios.py`), once for the fastest runs and once for the medians. A peer below 60 % of the best peer
after two runs of a column has no later runs of that column. For a run of limited duration give many rounds
and `--minutes`; the first round always completes.

Columns: *single* is one stream of 128 tokens after a short text; 4, 16, 32 and 64 are decode throughput
with that many streams of 64 random prompt tokens and 64 new tokens; *prefill* is the highest prompt
throughput of any batch. Greedy, ignoring end-of-sequence, without prefix caching. Pravāha runs through its
public engine, including scheduling and detokenization, without speculation; `--speculating` adds a second
configuration with speculation, which is in the table but not in the ratios. `--baseline` compares with
another built checkout of Pravāha instead of the peers: the ratios are this checkout over that one.
"""

import argparse
import sys
import time
from pathlib import Path

from rich.console import Console

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.comparison import ComparedEngine, Comparison, print_table
from benchmarks.driven_engine import OURS, Recipe
from benchmarks.machine import write_result
from benchmarks.measurements import COLUMNS
from benchmarks.names_option import names_among
from benchmarks.recipes import DEMO, FORMATS, our_recipe, peer_recipes

MEASURED = tuple(column for column in COLUMNS if column != "prefill")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dir", type=Path, required=True, help="directory of the peers")
    parser.add_argument(
        "--peers", type=names_among(FORMATS), default=[*FORMATS], help="peers, separated by commas"
    )
    parser.add_argument("--baseline", type=Path, help="a checkout of Pravāha, instead of peers")
    parser.add_argument(
        "--columns",
        type=names_among(MEASURED),
        default=[*MEASURED],
        help="columns; prefill is part of the batches",
    )
    parser.add_argument("--rounds", type=int, default=3, help="maximum number of rounds")
    parser.add_argument("--minutes", type=float, help="stop after this time, but complete round 1")
    parser.add_argument("--repeats", type=int, default=1, help="runs of a column per round")
    parser.add_argument("--model", type=Path, help="our model (default DIR/models/smollm2.gguf)")
    parser.add_argument(
        "--kv-dtype", choices=("auto", "f16", "int8"), default="auto", help="our KV cache type"
    )
    parser.add_argument("--threads", type=int, default=2, help="threads of every engine")
    parser.add_argument(
        "--speculating", action="store_true", help="add our engine with speculation"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the result to FILE")
    options = parser.parse_args()
    options.peers = [] if options.baseline else options.peers
    if min(options.rounds, options.repeats, options.threads) < 1:
        parser.error("--rounds, --repeats and --threads must be at least 1")
    return options


def main() -> None:
    options = parse()
    directory = options.dir.resolve()
    model = options.model or directory / "models" / DEMO
    kv = ("--kv-dtype", options.kv_dtype)
    compared = [ComparedEngine(our_recipe(model, *kv))]
    if options.speculating:
        speculating = our_recipe(model, *kv, "--speculation", label=", speculating")
        compared.append(ComparedEngine(speculating, rated=False))
    if options.baseline:
        driver = options.baseline.resolve() / OURS.relative_to(OURS.parents[2])
        baseline = Recipe(driver, Path(sys.executable), model, kv, ", baseline")
        compared.append(ComparedEngine(baseline, "baseline"))
    compared += [
        ComparedEngine(recipe, peer)
        for peer in options.peers
        for recipe in peer_recipes(peer, directory)
    ]
    until = time.monotonic() + 60 * options.minutes if options.minutes else float("inf")
    console = Console(width=None if sys.stdout.isatty() else 160)
    shown = 0
    with Comparison(
        compared, options.columns, threads=options.threads, repeats=options.repeats
    ) as comparison:
        rounds = 0
        for rounds in comparison.run(options.rounds, until):
            # After every column, so that an interrupted run leaves its results.
            if options.json:
                write_result(options.json, comparison.result(rounds))
            if rounds != shown and shown:
                print_table(comparison, console)
            shown = rounds
        print_table(comparison, console)


if __name__ == "__main__":
    main()
