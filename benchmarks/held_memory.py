"""The memory of engines after a prompt of 512 tokens and 16 new ones, each in a new process.

The peers allocate no more KV cells than these need, and of our pool only the blocks that were used are
resident.
"""

import subprocess
import time
from dataclasses import asdict
from pathlib import Path

from benchmarks.comparison import prompts
from benchmarks.driven_engine import DrivenEngine, OrderRefused, Recipe
from benchmarks.driven_process import ProcessFailed
from benchmarks.drivers.orders import Order
from benchmarks.machine import say
from benchmarks.process_memory import ProcessMemory
from engine.executors.weight_cache import SUFFIX

PROMPT_TOKENS, NEW_TOKENS = 512, 16
KEEPING_S = 300.0
"""Seconds until packed weights must be on disk."""


def keep_packed_weights(recipe: Recipe, threads: int, folder: Path) -> None:
    """Load the model once and wait until its packed weights are in `folder`.

    Raises:
        ProcessFailed: they are not there in time.
    """
    say(f"{recipe.display_name}: the packed weights are kept")
    command = [str(recipe.python), str(recipe.script), "--model", str(recipe.model)]
    command += ["--threads", str(threads), *recipe.flags]
    with subprocess.Popen(
        command,
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


def held_memory(recipes: list[Recipe], threads: int) -> dict[str, dict[str, int]]:
    """Engine → the fields of `ProcessMemory`; engines that fail are skipped with a message."""
    found = {}
    for recipe in recipes:
        say(f"memory: {recipe.display_name}")
        try:
            if recipe.missing is not None:
                raise ProcessFailed(f"{recipe.missing} does not exist")
            with DrivenEngine(recipe, threads=threads) as engine:
                engine.run(Order(1 + NEW_TOKENS, prompts(1, 0, PROMPT_TOKENS)))
                found[engine.name] = asdict(ProcessMemory.of(engine.pid))
        except (ProcessFailed, OrderRefused) as reason:
            say(f"{recipe.display_name} is skipped: {reason}")
    return found
