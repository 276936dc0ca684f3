"""Exit of a command: errors as one sentence on standard error, interrupts without a traceback."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from engine.api.errors import PravahaError

EXIT_ERROR = 1
EXIT_USAGE = 2
EXIT_INTERRUPTED = 130
EXIT_BROKEN_PIPE = 141
"""The status of a process that SIGPIPE ended, which shells expect when the reader has exited."""


@contextmanager
def one_sentence_errors() -> Iterator[None]:
    """Turn expected errors into a sentence and an exit status.

    Raises:
        typer.Exit: with the status.
    """
    try:
        yield
    except KeyboardInterrupt:
        raise typer.Exit(EXIT_INTERRUPTED) from None
    except BrokenPipeError:
        discard_output()
        raise typer.Exit(EXIT_BROKEN_PIPE) from None
    except (PravahaError, OSError) as error:
        print(f"pravaha: {error}", file=sys.stderr)
        raise typer.Exit(EXIT_ERROR) from None


def discard_output() -> None:
    """Redirect a broken standard output to /dev/null, so that the flush at exit does not fail."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)
