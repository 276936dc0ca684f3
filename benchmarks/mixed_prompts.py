"""Time to first token of short prompts that arrive while a long prompt is computed.

    python benchmarks/mixed_prompts.py --model FILE [--rounds 5] [--policies fcfs sjf] [--json FILE]

Per policy, with the default configuration except prefix caching and the swap tier, which are off: first
the long prompt alone, then each round the long prompt with three short ones, one after another, from half a
second after its submission. The engine is idle for some seconds before, so that its step times are known.
"""

import argparse
import random
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.machine import write_result
from engine.api.config import EngineConfig
from engine.api.request import Request, SamplingParams
from engine.api.scheduling import POLICIES, Scheduling
from engine.runtime.engine import AsyncPravahaEngine
from engine.runtime.request_handle import RequestHandle

SHORT = 5
SHORT_PROMPTS = 3
SETTLE_S = 3.0
LIMIT_S = 600.0
VOCABULARY = range(1000, 40_000)


def ttft(handle: RequestHandle) -> float:
    """Seconds from queueing to the first token."""
    seconds = handle.wait_result(LIMIT_S).timings.ttft
    assert seconds is not None
    return seconds


def measure(engine: AsyncPravahaEngine, tokens: int, rounds: int) -> dict[str, list[float]]:
    """Times to the first token: of the long prompt alone, beside short ones, and of these."""
    generator = random.Random(1)

    def ask(length: int) -> RequestHandle:
        prompt = tuple(generator.choice(VOCABULARY) for _ in range(length))
        sampling = SamplingParams(temperature=0.0, max_tokens=2, ignore_eos=True)
        return engine.submit(Request(prompt, sampling))

    times: dict[str, list[float]] = {"long_alone": [], "long": [], "short": []}
    for _ in range(rounds):
        times["long_alone"].append(ttft(ask(tokens)))
        long = ask(tokens)
        time.sleep(0.5)
        for _ in range(SHORT_PROMPTS):
            times["short"].append(ttft(ask(SHORT)))
            time.sleep(0.2)
        times["long"].append(ttft(long))
    return times


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", type=Path, required=True, help="GGUF file or directory")
    parser.add_argument("--tokens", type=int, default=8100, help="length of the long prompt")
    parser.add_argument("--rounds", type=int, default=3, help="rounds per policy")
    parser.add_argument("--policies", nargs="*", choices=POLICIES, default=["fcfs"])
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the result to FILE")
    options = parser.parse_args()
    config = EngineConfig(
        model=options.model, name=options.model.stem, prefix_caching=False, swap_bytes=0
    )
    engine = AsyncPravahaEngine(config)
    engine.start()
    result: dict[str, dict[str, list[float]]] = {}
    try:
        engine.wait_ready()
        time.sleep(SETTLE_S)
        for policy in options.policies:
            engine.set_scheduling(Scheduling(policy))
            times = result[policy] = measure(engine, options.tokens, options.rounds)
            shown = ", ".join(
                f"{name} {statistics.median(values):.2f} s (at most {max(values):.2f})"
                for name, values in times.items()
            )
            print(f"{policy}: {shown}")
    finally:
        engine.shutdown()
    if options.json:
        write_result(options.json, {"tokens": options.tokens, "seconds": result})


if __name__ == "__main__":
    main()
