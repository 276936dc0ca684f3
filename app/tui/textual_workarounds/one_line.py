"""`OneLine`: a text field of one line that takes all lines of a paste, joined by blanks.

Textual 8.2.8 takes the first line and drops the others.
"""

from textual import events
from textual.widgets import Input


class OneLine(Input):
    """See the module's description."""

    def _on_paste(self, event: events.Paste) -> None:
        event.prevent_default()
        lines = (line.strip() for line in event.text.splitlines())
        super()._on_paste(events.Paste(" ".join(line for line in lines if line)))
        event.stop()
