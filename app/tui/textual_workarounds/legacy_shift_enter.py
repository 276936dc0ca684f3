"""Shift+Enter in xterm's modifyOtherKeys form, for which Textual 8.2.8 has no name of its own."""

LEGACY_SHIFT_ENTER = "shift+\r"
"""`Key.key` of such an event."""
