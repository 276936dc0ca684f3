"""Compares Pravāha with peers on larger models, longer contexts and shared prefixes, interleaved.

    python benchmarks/scaling.py --dir DIR [--parts shapes,contexts,prefix] [--quick] [--json FILE]

* *shapes*: the columns of `peers.py` for models with the shapes of Qwen2.5 0.5B and 1.5B and random weights,
  created in `--cache`: Q4_1 for ours, Q4_0 for llama.cpp, which has faster kernels for it. OpenVINO and vLLM
  would need checkpoints and exports of gigabytes and are left out.
* *contexts*: decode throughput of the demo model at contexts of 128, 1k and 4k tokens per stream, without
  sharing. Prompts are computed once and then found in the prefix cache, so that prefill does not dominate
  the measurement.
* *prefix*: 51 streams whose prompts share 1,000 tokens and end in 24 different ones. All engines share the
  prefix: ours and OpenVINO by prefix caching, llama.cpp by copying one sequence's cells to the others.

Peers are llama.cpp in Q4_0 and OpenVINO in int8 and int4, all with as many runs as ours; figures and ratios
to the best peer are given for the fastest runs and for the medians.

`--quick` uses shorter outputs and fewer streams for the largest shapes, and takes minutes. The result is
written after every measurement.
"""

import argparse
import random
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.comparison import VOCABULARY, ComparedEngine, Comparison, print_table, prompts
from benchmarks.driven_engine import OrderRefused, Recipe
from benchmarks.driven_process import ProcessFailed
from benchmarks.drivers.orders import Order
from benchmarks.engine_turns import fill, lowest_ratios, start, throughput, turns, versions
from benchmarks.machine import say, write_result
from benchmarks.measurements import Lengths
from benchmarks.names_option import names_among
from benchmarks.recipes import DEMO, our_recipe, peer_recipe, peer_recipes
from engine.benchmark.workload import random_tokens
from engine.files.cache_dir import cache_dir

PARTS = ("shapes", "contexts", "prefix")
PEERS = {"llama_cpp": ("q4_0",), "openvino": ("int8", "int4")}
"""Peer → its weight formats in *contexts* and *prefix*."""
CONTEXTS = {128: (1, 4, 16), 1024: (1, 4, 16), 4096: (1, 4, 16)}
QUICK_CONTEXTS = {128: (1, 4, 16), 1024: (1, 4, 16), 4096: (1, 4)}
NEW_TOKENS = 32
AGENTS, PREFIX_TOKENS, TAIL_TOKENS = 51, 1000, 24
Save = Callable[[], None]


def recipes(options: argparse.Namespace, *flags: str) -> list[Recipe]:
    """The recipes of all engines with the demo model, ours first."""
    return [
        our_recipe(options.dir / "models" / DEMO, *flags),
        *(
            recipe
            for peer in options.peers
            for recipe in peer_recipes(peer, options.dir, *flags, formats=PEERS[peer])
        ),
    ]


def cell(figures: Mapping[str, float | None] | None, digits: int = 0) -> str:
    """Best (median) of a table's cell."""
    if not figures or figures.get("best") is None:
        return "–"
    shown = ("–" if rate is None else f"{rate:,.{digits}f}" for rate in figures.values())
    return "{} ({})".format(*shown)


# -- shapes ----------------------------------------------------------------------------------------


def shapes(options: argparse.Namespace, found: dict[str, Any], save: Save) -> None:
    """The columns of `peers.py` on synthetic models."""
    from benchmarks.synthetic_models import SHAPES, synthetic_model

    for name, shape in SHAPES.items():
        say(f"creating the {name} model")
        demo = options.dir / "models" / DEMO
        model = synthetic_model(shape, demo, options.cache)
        columns = ["single", "4", "16", "32", "64"]
        if options.quick:
            columns = columns[: 4 if name == "0.5B" else 3]
        lengths = Lengths(single=32, prompt=32, new=16) if options.quick else Lengths()
        compared = [ComparedEngine(our_recipe(model))]
        if "llama_cpp" in options.peers:
            q4_0 = synthetic_model(shape, demo, options.cache, "q4_0")
            peer = peer_recipe("llama_cpp", options.dir, q4_0)
            compared.append(ComparedEngine(peer, "llama_cpp"))
        with Comparison(compared, columns, threads=options.threads, lengths=lengths) as comparison:
            for rounds in comparison.run(options.rounds, float("inf")):
                found[name] = comparison.result(rounds)
                save()
            print(f"Qwen2.5 {name} shapes, {model.stat().st_size / 1e6:,.0f} MB")
            print_table(comparison, options.console)


# -- contexts --------------------------------------------------------------------------------------


def contexts(options: argparse.Namespace, found: dict[str, Any], save: Save) -> None:
    """Decode throughput at several contexts and numbers of streams."""
    wanted = QUICK_CONTEXTS if options.quick else CONTEXTS
    longest = max(wanted) + NEW_TOKENS + 32
    held = max(context * max(streams) for context, streams in wanted.items())
    flags = ("--prefix-caching", "--max-tokens", str(longest), "--kv-tokens", str(2 * held))
    with ExitStack() as stack:
        engines = start(stack, recipes(options, *flags), options.threads)
        found["engines"] = versions(engines)
        rates = found["tokens_per_second"] = {}
        seconds = found["seconds"] = {}
        ratios = found["ratio_to_best_peer"] = {}
        for context, numbers in wanted.items():
            every = prompts(max(numbers), context, context)
            filled = [engine for engine in engines if fill(engine, every)]
            for streams in numbers:
                key = f"{streams} × {context}"
                runs: dict[str, tuple[list[float], list[float]]] = {}
                for _, engine in turns(filled, 2 * options.rounds):
                    say(f"{key}: {engine.name}")
                    short, long = runs.setdefault(engine.name, ([], []))
                    short.append(engine.run(Order(1, every[:streams])))
                    long.append(engine.run(Order(1 + NEW_TOKENS, every[:streams])))
                seconds[key] = runs
                rates[key] = {
                    name: throughput(streams * NEW_TOKENS, *pair) for name, pair in runs.items()
                }
                ours, *peers = (rates[key].get(engine.name) for engine in engines)
                if ours:
                    ratios[key] = lowest_ratios(ours, [peer for peer in peers if peer])
                save()
    _print_contexts(found, options.console)


def _print_contexts(found: dict[str, Any], console: Console) -> None:
    table = Table(title="decode tokens per second: best (median)", title_justify="left")
    table.add_column("streams × context")
    rates, ratios = found["tokens_per_second"], found["ratio_to_best_peer"]
    for key in rates:
        table.add_column(key, justify="right")
    for name in found["engines"]:
        table.add_row(name, *(cell(cells.get(name)) for cells in rates.values()))
    table.add_row("÷ best peer", *(cell(ratios.get(key), 2) for key in rates))
    console.print(table)


# -- a shared prefix -------------------------------------------------------------------------------


def agents(seed: int) -> list[list[int]]:
    """Prompts that share their first `PREFIX_TOKENS` token ids, different for every seed."""
    generator = random.Random(seed)
    prefix = random_tokens(generator, PREFIX_TOKENS, VOCABULARY)
    return [prefix + random_tokens(generator, TAIL_TOKENS, VOCABULARY) for _ in range(AGENTS)]


def prefix(options: argparse.Namespace, found: dict[str, Any], save: Save) -> None:
    """Total time and decode throughput of many streams with one shared prefix."""
    flags = ("--prefix-caching", "--kv-tokens", str(AGENTS * 1200))
    figures = found["figures"] = {}
    with ExitStack() as stack:
        engines = start(stack, recipes(options, *flags), options.threads)
        found["engines"] = versions(engines)
        runs: dict[str, tuple[list[float], list[float]]] = {}
        for number, engine in turns(engines, options.rounds):
            say(f"{AGENTS} streams with one prefix: {engine.name}")
            short, long = runs.setdefault(engine.name, ([], []))
            try:
                if number == 0:
                    engine.run(Order(2, prompts(4, 0, 64)))
                # Different prefixes, or the second run would find the first run's in the cache.
                seed = 2 * number
                first = engine.run(Order(1, agents(seed), shared_prefix=PREFIX_TOKENS))
                whole = engine.run(
                    Order(1 + NEW_TOKENS, agents(seed + 1), shared_prefix=PREFIX_TOKENS)
                )
            except (ProcessFailed, OrderRefused) as reason:
                say(f"{engine.name} is skipped: {reason}")
                continue
            short.append(first)
            long.append(whole)
            figures[engine.name] = {
                "first_tokens_s": {"best": min(short), "median": median(short)},
                "total_s": {"best": min(long), "median": median(long)},
                "tokens_per_second": throughput(AGENTS * NEW_TOKENS, short, long),
                "seconds": {"short": short, "long": long},
            }
            save()
    _print_prefix(figures, options.console)


def _print_prefix(figures: dict[str, Any], console: Console) -> None:
    table = Table(
        title=f"{AGENTS} streams, {PREFIX_TOKENS:,} shared tokens, {TAIL_TOKENS} private, "
        f"{1 + NEW_TOKENS} new: best (median)",
        title_justify="left",
    )
    for heading in ("", "first tokens, s", "all, s", "decode tok/s"):
        table.add_column(heading, justify="right" if heading else "left")
    for name, of_engine in figures.items():
        table.add_row(
            name,
            cell(of_engine["first_tokens_s"], 2),
            cell(of_engine["total_s"], 2),
            cell(of_engine["tokens_per_second"]),
        )
    console.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dir", type=Path, required=True, help="directory of the peers")
    parser.add_argument(
        "--parts", type=names_among(PARTS), default=[*PARTS], help="parts, separated by commas"
    )
    parser.add_argument(
        "--peers", type=names_among(PEERS), default=[*PEERS], help="peers, separated by commas"
    )
    parser.add_argument("--quick", action="store_true", help="shorter outputs, fewer streams")
    parser.add_argument("--rounds", type=int, help="number of rounds (default 2, --quick 1)")
    parser.add_argument("--threads", type=int, default=2, help="threads of every engine")
    parser.add_argument("--cache", type=Path, help="directory of the synthetic models")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the result to FILE")
    options = parser.parse_args()
    options.dir = options.dir.resolve()
    options.cache = options.cache or cache_dir() / "synthetic"
    options.rounds = options.rounds or (1 if options.quick else 2)
    options.console = Console(width=None if sys.stdout.isatty() else 160)
    result: dict[str, Any] = {"quick": options.quick, "threads": options.threads}

    def save() -> None:
        if options.json:
            write_result(options.json, result)

    for part in options.parts:
        result[part] = {}
        {"shapes": shapes, "contexts": contexts, "prefix": prefix}[part](
            options, result[part], save
        )


if __name__ == "__main__":
    main()
