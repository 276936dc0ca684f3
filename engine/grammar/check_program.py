"""Program of the checking process (`engine.grammar.checker`): builds grammars under resource limits.

Reads one JSON array per line, a grammar in llguidance's format and its processor time in seconds, and
answers with one JSON value per line: the error, an empty string, or null if the grammar exceeded a limit
or crashed the library. Every grammar is built in a fork, which the kernel ends at a limit: a fork costs
1 ms, a new process 0.2 s. Runs as a script and imports only the grammar library, not the engine, so that it
starts quickly.
"""

import contextlib
import json
import os
import resource
import signal
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
        text, cpu_s = json.loads(line)
        child = os.fork()
        if child == 0:
            try:
                signal.setitimer(signal.ITIMER_PROF, cpu_s)  # its signal ends the process
                matcher = LLMatcher(tokenizer, text, limits=limits, log_level=0)
                if not matcher.is_error():
                    matcher.compute_bitmask()
                signal.setitimer(signal.ITIMER_PROF, 0)
                _answer(matcher.get_error())
                os._exit(0)
            finally:
                os._exit(1)
        if os.waitpid(child, 0)[1] != 0:
            _answer(None)


def _answer(value: str | None) -> None:
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
