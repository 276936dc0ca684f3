"""Log of the commands without a screen: warnings and tracebacks on standard error."""

import logging
import sys

from app.commands.log_format import LOG_FORMAT


def log_to_stderr() -> None:
    """Write log records of level WARNING and above to standard error, unless they go somewhere already."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LOG_FORMAT)
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
