"""`LOG_FORMAT`: how records are written to a log file or to standard error."""

import logging

from app.text.safe_text import safe_text


class _Formatter(logging.Formatter):
    """One record begins at the beginning of a line, and no other line does.

    Records may have names and texts of clients, models and files: they can neither forge a record nor send
    control sequences to the terminal in which the log is read.
    """

    def format(self, record: logging.LogRecord) -> str:
        """The text of a record."""
        return safe_text(super().format(record)).replace("\n", "\n    ")


LOG_FORMAT = _Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s")
