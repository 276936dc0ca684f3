"""The program that builds a grammar first, where it can harm nobody: see `checker`.

Reads one JSON line a grammar from standard input and answers each with one: what is wrong with it,
or an empty string. Its memory is bounded; its processor time, too, anew for each grammar. What
exceeds either ends the process, which the parent reads as the answer. Runs as a file of its own and
imports the grammar library and nothing of the engine, so that it starts fast.
"""

import contextlib
import json
import os
import resource
import sys


def main() -> None:
    """Serve until standard input ends, which it does when the parent does."""
    settings = json.loads(sys.argv[1])
    from llguidance import LLMatcher, LLParserLimits, LLTokenizer

    with contextlib.suppress(ValueError, OSError):  # a stricter limit is in force already
        resource.setrlimit(resource.RLIMIT_AS, (settings["bytes"], settings["bytes"]))
    os.nice(10)  # whoever is being answered comes first
    limits = LLParserLimits(**settings["parser"])
    tokenizer = LLTokenizer("byte")
    for line in sys.stdin:
        _allow_processor_time(settings["cpu_s"])
        matcher = LLMatcher(tokenizer, json.loads(line), limits=limits, log_level=0)
        if not matcher.is_error():
            matcher.compute_bitmask()
        sys.stdout.write(json.dumps(matcher.get_error()) + "\n")
        sys.stdout.flush()
        del matcher  # memory is for one grammar at a time


def _allow_processor_time(seconds: int) -> None:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    used = int(usage.ru_utime + usage.ru_stime)
    resource.setrlimit(resource.RLIMIT_CPU, (used + 1 + seconds, resource.RLIM_INFINITY))


if __name__ == "__main__":
    main()
