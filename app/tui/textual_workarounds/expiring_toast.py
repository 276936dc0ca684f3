"""A notification that expires while it is being shown.

Textual 8.2.8 starts a timer of the notification's remaining seconds when its toast is mounted. If they have
become negative since Textual checked them, the timer repeats a loop without end and the app stands still.
"""

from textual.notifications import Notification

MIN_LEFT_S = 0.05
"""Seconds for which an expired notification is shown."""


class ExpiringNotification(Notification):
    """A notification whose remaining time is never zero or negative."""

    @property
    def time_left(self) -> float:
        """Seconds until it is removed from the screen."""
        return max(MIN_LEFT_S, super().time_left)

    @property
    def has_expired(self) -> bool:
        """Whether it is not to be shown again."""
        return super().time_left <= 0
