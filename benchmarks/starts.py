"""Starts of an engine with a model: seconds until it is loaded and answers, and the memory it then holds.

*Cold*: the model's files were dropped from the page cache before. *Warm*: they were read before.
Interpreter and libraries are in the page cache in both. Seconds are from the start of the process; *first
token* also computes a prompt of 16 tokens. Memory is read after a prompt of 512 tokens and 16 new ones;
the peers allocate no more KV cells than these need.
"""

import os
import subprocess
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.comparison import prompts
from benchmarks.driven_engine import DrivenEngine, Recipe
from benchmarks.driven_process import ProcessFailed
from benchmarks.drivers.orders import Order
from benchmarks.machine import say
from benchmarks.process_memory import ProcessMemory
from engine.executors.weight_cache import SUFFIX

STATES = ("cold", "warm")
FIRST_PROMPT, HELD_PROMPT, HELD_NEW = 16, 512, 16
KEEPING_S = 300.0
"""Seconds until packed weights must be on disk."""


def files_of(path: Path) -> Iterator[Path]:
    """The files of a model or of a folder."""
    yield from [path] if path.is_file() else (each for each in path.rglob("*") if each.is_file())


def drop_from_page_cache(path: Path) -> None:
    """Drop a model's files from the page cache; no process may have them mapped."""
    for each in files_of(path):
        with each.open("rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def read_into_page_cache(path: Path) -> None:
    """Read a model's files."""
    for each in files_of(path):
        with each.open("rb", buffering=0) as file:
            while file.read(1 << 24):
                pass


def keep_packed_weights(recipe: Recipe, threads: int, folder: Path) -> None:
    """Load the model once and wait until its packed weights are in `folder`.

    Raises:
        ProcessFailed: they are not there in time.
    """
    say(f"{recipe.display_name}: the packed weights are kept")
    command = [recipe.python, recipe.script, "--model", recipe.model, "--threads", str(threads)]
    with subprocess.Popen(
        [*command, *recipe.flags],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        until = time.monotonic() + KEEPING_S
        while not any(folder.rglob(f"*{SUFFIX}")):
            if time.monotonic() > until or process.poll() is not None:
                process.kill()
                raise ProcessFailed("the packed weights were not kept")
            time.sleep(0.2)


def measure_starts(
    wanted: list[tuple[Recipe, list[Path]]], threads: int, rounds: int
) -> dict[str, Any]:
    """Start every engine cold and warm in every round, in an order that rotates.

    Args:
        wanted: engines, and the files that each reads.
        threads: threads of every engine.
        rounds: starts of each.

    Returns:
        Engine → seconds of its starts by state, and its memory.
    """
    found: dict[str, Any] = {}
    for number in range(rounds):
        for state in STATES:
            at = number % len(wanted)
            for recipe, files in wanted[at:] + wanted[:at]:
                say(f"start {number + 1}, {state}: {recipe.display_name}")
                for path in files:
                    (drop_from_page_cache if state == "cold" else read_into_page_cache)(path)
                try:
                    _start(recipe, threads, state, found)
                except ProcessFailed as reason:
                    say(f"{recipe.display_name} did not start: {reason}")
    return found


def _start(recipe: Recipe, threads: int, state: str, found: dict[str, Any]) -> None:
    if recipe.missing is not None:
        raise ProcessFailed(f"{recipe.missing} does not exist")
    begin = time.monotonic()
    with DrivenEngine(recipe, threads=threads) as engine:
        loaded = time.monotonic() - begin
        engine.run(Order(1, prompts(1, 0, FIRST_PROMPT)))
        first = time.monotonic() - begin
        of_engine = found.setdefault(
            engine.name, {each: {"loaded_s": [], "first_token_s": []} for each in STATES}
        )
        of_engine[state]["loaded_s"].append(loaded)
        of_engine[state]["first_token_s"].append(first)
        if state == "warm" and "memory" not in of_engine:
            engine.run(Order(1 + HELD_NEW, prompts(1, 1, HELD_PROMPT)))
            of_engine["memory"] = asdict(ProcessMemory.of(engine.pid))
