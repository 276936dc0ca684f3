"""Program of the checking process (`engine.grammar.checker`): builds grammars under resource limits.

Reads one JSON string per line, a grammar in llguidance's format, and answers with one JSON string per
line: the error, or an empty string. The address space is limited for the process, processor time for
each grammar. A grammar that exceeds a limit ends the process, which the parent detects. Runs as a
script and imports only the grammar library, not the engine, so that it starts quickly.
"""

import contextlib
import json
import os
import resource
import sys


def main() -> None:
    """Serve until standard input is closed, at the latest when the parent exits."""
    settings = json.loads(sys.argv[1])
    from llguidance import LLMatcher, LLParserLimits, LLTokenizer

    with contextlib.suppress(ValueError, OSError):  # a stricter limit is already set
        resource.setrlimit(resource.RLIMIT_AS, (settings["bytes"], settings["bytes"]))
    os.nice(10)  # requests in progress have precedence
    limits = LLParserLimits(**settings["parser"])
    tokenizer = LLTokenizer("byte")
    for line in sys.stdin:
        _allow_processor_time(settings["cpu_s"])
        matcher = LLMatcher(tokenizer, json.loads(line), limits=limits, log_level=0)
        if not matcher.is_error():
            matcher.compute_bitmask()
        sys.stdout.write(json.dumps(matcher.get_error()) + "\n")
        sys.stdout.flush()
        del matcher  # the memory limit applies to one grammar at a time


def _allow_processor_time(seconds: int) -> None:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    used = int(usage.ru_utime + usage.ru_stime)
    resource.setrlimit(resource.RLIMIT_CPU, (used + 1 + seconds, resource.RLIM_INFINITY))


if __name__ == "__main__":
    main()
