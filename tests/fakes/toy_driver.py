"""A benchmark driver of a dummy engine whose speed is stated in its model file."""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks" / "drivers"))

from orders import NotRunnable, Order, arguments, serve

options = arguments()
speed = json.loads(options.model.read_text())
if options.weight_cache:
    (options.weight_cache / "weights.packed").touch()
runs = 0


def run(order: Order) -> float:
    """Seconds at the stated rates; writes to standard output as engines do."""
    global runs
    runs += 1
    print("a line of the engine's own")
    if runs > speed.get("runs", 1_000):
        sys.exit("out of memory")
    if len(order.prompts) > speed.get("streams", 1_000):
        raise NotRunnable("too many streams")
    prompt_tokens = sum(map(len, order.prompts)) or 4
    new_tokens = (order.new_tokens - 1) * max(1, len(order.prompts))
    return prompt_tokens / speed["prefill"] + new_tokens / speed["decode"]


serve(
    {
        "engine": speed["engine"],
        "version": "3",
        "weights": "Q4_1",
        "work": {
            "weight_bytes": 1_000_000,
            "kv_bytes_per_token": 100.0,
            "parameters": 2_000_000,
            "head_parameters": 500_000,
            "lookup_parameters": 0,
            "integer": True,
        },
    },
    run,
)
