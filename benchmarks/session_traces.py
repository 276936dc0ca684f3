"""What sessions of coding agents cost: tokens computed over tokens that are new, for each trace.

    python benchmarks/session_traces.py --model FILE [--trace NAME ...] [--json FILE]

Replays `tests/traces/*.json` at the full size of their heads through the server, in this process
(`tests.traces.replay`): texts are the model's own, calls of tools are those of the trace. Prints for each
trace

* *requests*, *prompt*: their number, and the tokens of all prompts;
* *new*: tokens that no earlier request had computed at the same place;
* *computed/new*: what the server has computed;
* *one slot*, *all slots*: the same ratio for a server that encodes all messages anew for each request and
  computes what differs from the last sequence, or from the nearest one of all. These are computed from the
  same requests by that rule, no such server runs: the first is llama.cpp's with one slot, and so that of
  programs that drive it, such as Ollama, if their context has been raised to the size of the prompts; the
  second the best that slots kept in memory can do.
"""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.machine import say, write_result
from engine.api.config import EngineConfig
from engine.runtime.engine import AsyncPravahaEngine
from tests.server.live import live
from tests.traces.replay import CHARS_PER_TOKEN, Cost, Replay, Size, load, names

FILE_CHARS = 6000
ANSWER_TOKENS = 48
CONTEXT = 32_768
HEADER = ("trace", "requests", "prompt", "new", "computed/new", "one slot", "all slots")


def summed(costs: list[Cost]) -> dict[str, float]:
    """The figures of one trace."""
    new = sum(one.new for one in costs)
    return {
        "requests": len(costs),
        "prompt": sum(one.prompt for one in costs),
        "new": new,
        "computed": sum(one.computed for one in costs),
        "computed/new": sum(one.computed for one in costs) / new,
        "one slot": sum(one.one_slot for one in costs) / new,
        "all slots": sum(one.many_slots for one in costs) / new,
    }


def main() -> None:
    """Replay the traces and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--trace", nargs="*", default=names(), choices=names())
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    print("| " + " | ".join(HEADER) + " |\n|" + "---|" * len(HEADER), flush=True)
    results = {}
    for name in options.trace:
        trace = load(name)
        # Each trace begins with an empty cache.
        config = EngineConfig(options.model, "model", kv_cache_bytes=3 << 30, max_model_len=CONTEXT)
        engine = AsyncPravahaEngine(config)
        engine.start()
        engine.wait_ready()
        try:
            with live(engine) as server:
                say(f"{name}: {trace['client']}")
                head = round(trace["head_tokens"] * CHARS_PER_TOKEN)
                size = Size(head, FILE_CHARS, ANSWER_TOKENS, free=True)
                costs = Replay(trace, server, size).run()
        finally:
            engine.shutdown()
        one = results[name] = summed(costs)
        ratios = (f"{one[column]:.3f}" for column in HEADER[4:])
        cells = (name, *(f"{one[column]:,}" for column in HEADER[1:4]), *ratios)
        print("| " + " | ".join(cells) + " |", flush=True)
        results[name]["costs"] = [vars(cost) for cost in costs]  # type: ignore[assignment]
    if options.json:
        write_result(options.json, {"traces": results})


if __name__ == "__main__":
    main()
