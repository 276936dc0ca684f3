"""51 agents over one document: tokens computed and wall time, ours and the peers' with their prefix caches.

    python benchmarks/agents_sharing.py [--dir DIR] [--rounds 2] [--quick] [--json FILE]

A run is 51 prompts that share a document of about 3,000 tokens, a whole number of KV blocks, and end in
role cards of 40 to 80 tokens. Every run has a new document, so no cache is warm. Two kinds of answers: one
token (a decision), and 32 tokens, greedy, ignoring end-of-sequence.

* *tokens*: what our engine computes for it, by its counters, through the agents' own session.
* *together*: all 51 prompts at once. *one by one*: 51 separate requests, each after the one before.
* Peers (`benchmarks/peers_setup.sh DIR llama_server openvino`): llama.cpp's server with its prompt cache on,
  one slot one by one and 8 slots together; OpenVINO GenAI with prefix caching, which computes the prefix in a
  first call, because prompts that are submitted together do not share it there. Each in its fastest formats.

The ratio is the fastest run of a peer over our fastest run together, with as many runs of both. Runs
without a cache take minutes and are made once, without `--quick` only.
"""

import argparse
import asyncio
import random
import sys
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from agents.model.session import ModelSession, usage_of
from benchmarks.comparison import VOCABULARY
from benchmarks.driven_engine import DRIVERS, DrivenEngine, OrderRefused, Recipe
from benchmarks.driven_process import ProcessFailed
from benchmarks.drivers.orders import Order
from benchmarks.machine import say, write_result
from benchmarks.recipes import FORMATS, our_recipe, peer_recipes
from engine.api.config import EngineConfig
from engine.api.request import Request, SamplingParams
from engine.benchmark.workload import random_tokens
from engine.clients.in_process import InProcessClient
from engine.models.demo import SMOLLM2
from engine.models.store import ModelStore
from engine.runtime.engine import AsyncPravahaEngine

AGENTS = 51
BLOCK = 32
SHARED = 94 * BLOCK
CARD = (40, 80)
ANSWERS = (1, 32)
SLOTS = 8
LLAMA_CPP = "q4_0"
"""The format for which llama.cpp has the fastest kernels."""
HOPELESS = 3.0
"""Ways so many times slower than the best peer have no later runs."""
LENGTH = SHARED + CARD[1] + max(ANSWERS)
KV = ("--kv-tokens", str(AGENTS * (LENGTH + BLOCK)))
COMMON = ("--max-tokens", str(LENGTH + BLOCK), *KV)


def prompts(seed: int) -> list[list[int]]:
    """The prompts of one run, as token ids."""
    generator = random.Random(seed)
    shared = random_tokens(generator, SHARED, VOCABULARY)
    return [
        shared + random_tokens(generator, generator.randint(*CARD), VOCABULARY)
        for _ in range(AGENTS)
    ]


@dataclass
class Way:
    """An engine in one configuration, and how it gets the prompts.

    Attributes:
        label: as printed.
        recipe: how to start it.
        together: all prompts at once, instead of one by one.
        cached: whether its prefix cache is on; without, it runs once.
        seconds: per number of new tokens, the durations.
    """

    label: str
    recipe: Recipe
    together: bool
    cached: bool = True
    ours: bool = False
    seconds: dict[int, list[float]] = field(default_factory=dict)

    def run(self, engine: DrivenEngine, new_tokens: int, seed: int) -> float:
        """The duration of one run."""
        every = prompts(seed)
        if self.together:
            return engine.run(Order(new_tokens, every, shared_prefix=SHARED if self.cached else 0))
        return sum(engine.run(Order(new_tokens, [one])) for one in every)


def ways(options: argparse.Namespace) -> list[Way]:
    """All configurations, ours first."""
    on, off = (*COMMON, "--prefix-caching"), COMMON
    model = options.model
    found = [
        Way("ours, together", our_recipe(model, *on), together=True, ours=True),
        Way("ours, one by one", our_recipe(model, *on), together=False, ours=True),
    ]
    if not options.quick:
        found += [
            Way("ours, no cache, together", our_recipe(model, *off), True, False, True),
            Way("ours, no cache, one by one", our_recipe(model, *off), False, False, True),
        ]
    if options.dir is None:
        return found
    for recipe in peer_recipes("openvino", options.dir, *on):
        name = f"OpenVINO GenAI {recipe.model.name.removeprefix('ov_')}"
        found.append(Way(f"{name}, together", recipe, together=True))
        found.append(Way(f"{name}, one by one", recipe, together=False))
    model = options.dir / "models" / FORMATS["llama_cpp"][LLAMA_CPP]
    python = options.dir / "llama_server" / "bin" / "python"
    for slots, words in ((1, "one by one"), (SLOTS, f"{SLOTS} slots together")):
        flags = (*COMMON[:2], "--kv-tokens", str(slots * (LENGTH + 256)), "--slots", str(slots))
        recipe = Recipe(DRIVERS / "llama_server_driver.py", python, model, flags)
        found.append(Way(f"llama.cpp server {LLAMA_CPP}, {words}", recipe, together=slots > 1))
    return found


def count_tokens(model: Path) -> dict[str, int]:
    """What our engine computes for one run, by its counters."""
    config = EngineConfig(model=model, name="demo", block_size=BLOCK, speculation=False)
    engine = AsyncPravahaEngine(config)
    engine.start()
    try:
        engine.wait_ready(None)
        client = InProcessClient(engine)
        every = prompts(0)
        sampling = SamplingParams(temperature=0.0, max_tokens=1, ignore_eos=True)
        before = client.snapshot().totals
        session = ModelSession(client)
        generations = asyncio.run(
            session.generate_all([Request(tuple(one), sampling) for one in every])
        )
        after = client.snapshot().totals
        return {
            "shared": SHARED,
            "cards": sum(len(one) - SHARED for one in every),
            "separate": sum(map(len, every)),
            "computed": after.prompt_tokens - before.prompt_tokens,
            "reused": usage_of(generations).cached_tokens,
            "steps": after.steps - before.steps,
        }
    finally:
        engine.shutdown()


def measure(options: argparse.Namespace, every: list[Way], save: Any) -> None:
    """Run all ways in every round, in an order that rotates."""
    for number in range(options.rounds):
        at = number % len(every)
        for way in every[at:] + every[:at]:
            if number and (not way.cached or hopeless(way, every)):
                continue
            say(f"round {number + 1}: {way.label}")
            try:
                if way.recipe.missing is not None:
                    raise ProcessFailed(f"{way.recipe.missing} does not exist")
                with ExitStack() as stack:
                    engine = DrivenEngine(way.recipe, threads=options.threads)
                    stack.callback(engine.close)
                    engine.run(Order(2, [[17] * 64]))  # the first run allocates
                    for new_tokens in ANSWERS:
                        seed = 1000 * number + new_tokens
                        taken = way.run(engine, new_tokens, seed)
                        way.seconds.setdefault(new_tokens, []).append(taken)
            except (ProcessFailed, OrderRefused) as reason:
                say(f"{way.label} is skipped: {reason}")
            save()


def hopeless(way: Way, every: list[Way]) -> bool:
    """Whether a peer's way took `HOPELESS` times as long as the best peer's in both kinds of answers."""
    if way.ours or not way.seconds:
        return False
    peers = [one for one in every if not one.ours and one.seconds]
    return all(
        min(way.seconds[n]) > HOPELESS * min(min(one.seconds[n]) for one in peers) for n in ANSWERS
    )


def ratios(every: list[Way]) -> dict[int, float]:
    """Per number of new tokens, the fastest peer's time over ours together."""
    found = {}
    for new_tokens in ANSWERS:
        times = [min(way.seconds[new_tokens]) for way in every if not way.ours and way.seconds]
        if times and every[0].seconds:
            found[new_tokens] = min(times) / min(every[0].seconds[new_tokens])
    return found


def report(result: dict[str, Any], every: list[Way]) -> None:
    """Print the table."""
    counts = result["tokens"]
    print(
        f"{AGENTS} agents, document {counts['shared']:,} tokens, cards {counts['cards']:,}: "
        f"{counts['computed']:,} computed in {counts['steps']} steps, "
        f"{counts['separate']:,} without sharing"
    )
    table = Table()
    for heading in ("", *(f"{n} new, s" for n in ANSWERS), "÷ ours"):
        table.add_column(heading, justify="right" if heading else "left")
    best = {n: min(every[0].seconds.get(n, [float("nan")])) for n in ANSWERS}
    for way in every:
        if way.seconds:
            times = [min(way.seconds[n]) for n in ANSWERS]
            shown = ", ".join(f"{t / best[n]:.2f}" for n, t in zip(ANSWERS, times, strict=True))
            table.add_row(way.label, *(f"{one:.2f}" for one in times), shown)
    Console(width=None if sys.stdout.isatty() else 120).print(table)
    for new_tokens, ratio in result["ratio_to_best_peer"].items():
        print(f"{new_tokens} new tokens: {ratio:.2f} × the best peer")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dir", type=Path, help="directory of the peers; without it only ours")
    parser.add_argument("--model", type=Path, help="our model (default: the demo model)")
    parser.add_argument("--rounds", type=int, default=2, help="runs of every configuration")
    parser.add_argument("--threads", type=int, default=2, help="threads of every engine")
    parser.add_argument("--quick", action="store_true", help="without the runs that use no cache")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the result to FILE")
    options = parser.parse_args()
    options.dir = options.dir and options.dir.resolve()
    options.model = options.model or ModelStore().add(SMOLLM2.name).path
    every = ways(options)
    result: dict[str, Any] = {"tokens": count_tokens(options.model), "threads": options.threads}

    def save() -> None:
        result["seconds"] = {way.label: way.seconds for way in every if way.seconds}
        result["ratio_to_best_peer"] = ratios(every)
        if options.json:
            write_result(options.json, result)

    measure(options, every, save)
    save()
    report(result, every)


if __name__ == "__main__":
    main()
