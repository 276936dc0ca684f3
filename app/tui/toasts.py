"""Notifications: a few different ones at a time, without control sequences, repeated in the log."""

import logging
from typing import Any, Literal

from textual.app import App
from textual.notifications import Notification, Notify

from app.text.safe_text import safe_line
from app.tui.textual_workarounds.expiring_toast import ExpiringNotification

Severity = Literal["information", "warning", "error"]

MAX_TOASTS = 3
"""Notifications on the screen; a further one replaces the oldest."""

log = logging.getLogger(__name__)

_LEVELS = {"information": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


def toast(app: App[Any], text: str, severity: Severity = "information") -> None:
    """Show `text`, which must hold no text of a chat, because it is logged too."""
    clean = safe_line(text)
    log.log(_LEVELS[severity], "%s", clean)
    notification = ExpiringNotification(clean, "", severity, app.NOTIFICATION_TIMEOUT)
    app.post_message(Notify(notification))
    app.call_later(_keep_newest, app)  # after Textual has added it


def _keep_newest(app: App[Any]) -> None:
    """Remove a notification that is repeated, and the oldest ones beyond `MAX_TOASTS`."""
    newest: dict[str, Notification] = {}
    for notification in list(app._notifications):
        repeated = newest.pop(notification.message, None)
        if repeated is not None:
            app._unnotify(repeated)
        newest[notification.message] = notification
    for oldest in list(newest.values())[:-MAX_TOASTS]:
        app._unnotify(oldest)
