"""Pravāha beside other engines: the same model, the same work, taking turns in one run.

    python benchmarks/peers.py --dir DIR [--peers llama_cpp,openvino] [--rounds 3] [--json FILE]
    python benchmarks/peers.py --dir DIR --baseline CHECKOUT

DIR is where the peers live: a virtual environment for each (`DIR/llama_cpp`, …) and `DIR/models`, made by
the peers' own `setup.sh`. Every engine is started once and stays loaded, stopped while others work. A round
goes through the columns; in each, the engines take turns, in an order that rotates from round to
round, so that all of them meet the machine's better and worse moments. A peer that is not installed, or
fails, is skipped by name. The result so far is written after every column.

Columns: *single* is one stream of 128 tokens after a short text; 4, 16, 32 and 64 are that many streams of
64 random prompt tokens and 64 new ones, decode throughput; *prefill* is the best prompt throughput of any
batch. Greedy, end-of-sequence ignored, no prefix caching. Ours goes through the public engine, scheduler and
detokenisation included, without speculation; `--speculating` adds a second one of ours with it, which
is in the table and in no ratio. `--baseline` compares with another built checkout of Pravāha in place of
the peers: the ratios are this checkout's figures over that one's.
"""

import argparse
import sys
import time
from pathlib import Path

from rich.console import Console

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.driven_engine import DRIVERS, OURS, Recipe
from benchmarks.machine import write_result
from benchmarks.race import Contestant, Race, print_table
from benchmarks.standings import COLUMNS

PEERS = ("llama_cpp", "openvino", "vllm_cpu", "transformers")
MEASURED = tuple(column for column in COLUMNS if column != "prefill")


def recipes(peer: str, directory: Path) -> list[Recipe]:
    """How a peer is started: llama.cpp and OpenVINO in two weight formats, the others in one.

    llama.cpp has repacked kernels for Q4_0 and none for Q4_1, the format of the demo model.
    """
    python, models = directory / peer / "bin" / "python", directory / "models"
    script = DRIVERS / f"{peer}_driver.py"
    names = {"llama_cpp": ("smollm2.gguf", "smollm2-q4_0.gguf"), "openvino": ("ov_int8", "ov_int4")}
    return [Recipe(script, python, models / name) for name in names.get(peer, ("smollm2_bf16",))]


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dir", type=Path, required=True, help="where the peers live")
    parser.add_argument("--peers", default=",".join(PEERS), help="which, separated by commas")
    parser.add_argument("--baseline", type=Path, help="a checkout of Pravāha instead of peers")
    parser.add_argument("--once", default="", help="those of them that run in round 1 only")
    parser.add_argument(
        "--columns", default=",".join(MEASURED), help="which; prefill comes with the batches"
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--minutes", type=float, help="begin no further round after so long")
    parser.add_argument("--repeats", type=int, default=1, help="runs of a column in a round")
    parser.add_argument("--model", type=Path, help="ours; DIR/models/smollm2.gguf without it")
    parser.add_argument("--kv-dtype", choices=("auto", "f16", "int8"), default="auto", help="ours")
    parser.add_argument("--threads", type=int, default=2, help="of every engine")
    parser.add_argument("--speculating", action="store_true", help="ours also with speculation")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the result there, too")
    options = parser.parse_args()
    options.peers = [name for name in options.peers.split(",") if name and not options.baseline]
    options.once = [name for name in options.once.split(",") if name]
    options.columns = [name for name in options.columns.split(",") if name]
    for names, known, kind in (
        (options.peers, PEERS, "peer"),
        (options.once, options.peers, "peer of this run"),
        (options.columns, MEASURED, "column to measure"),
    ):
        if unknown := sorted(set(names) - set(known)):
            parser.error(f"no {kind} is called {', '.join(unknown)}: there are {', '.join(known)}")
    if min(options.rounds, options.repeats, options.threads) < 1:
        parser.error("--rounds, --repeats and --threads must be at least 1")
    return options


def main() -> None:
    options = parse()
    directory = options.dir.resolve()
    model = options.model or directory / "models" / "smollm2.gguf"
    kv = ("--kv-dtype", options.kv_dtype)
    ours = Recipe(OURS, Path(sys.executable), model, kv)
    contestants = [Contestant(ours)]
    if options.speculating:
        speculating = Recipe(
            OURS, Path(sys.executable), model, (*kv, "--speculation"), ", speculating"
        )
        contestants.append(Contestant(speculating, rated=False))
    if options.baseline:
        driver = options.baseline.resolve() / OURS.relative_to(OURS.parents[2])
        baseline = Recipe(driver, Path(sys.executable), model, kv, ", baseline")
        contestants.append(Contestant(baseline, "baseline"))
    contestants += [
        Contestant(recipe, peer, rounds=1 if peer in options.once else None)
        for peer in options.peers
        for recipe in recipes(peer, directory)
    ]
    until = time.monotonic() + 60 * options.minutes if options.minutes else float("inf")
    console = Console(width=None if sys.stdout.isatty() else 160)
    shown = 0
    with Race(
        contestants, options.columns, threads=options.threads, repeats=options.repeats
    ) as race:
        rounds = 0
        for rounds in race.run(options.rounds, until):
            # After every column, so that a run that is stopped leaves what it measured.
            if options.json:
                write_result(options.json, race.result(rounds))
            if rounds != shown and shown:
                print_table(race, console)
            shown = rounds
        print_table(race, console)


if __name__ == "__main__":
    main()
