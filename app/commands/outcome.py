"""How a command ends: errors as one sentence on standard error, interrupts without a traceback."""

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
"""As if SIGPIPE had ended us, which is what shells expect of a reader that left."""


@contextmanager
def one_sentence_errors() -> Iterator[None]:
    """Turn what may go wrong into a sentence and an exit status.

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
    """Let nothing be written to a broken standard output any more, not even at exit."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)
