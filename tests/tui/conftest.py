"""A terminal that is the same everywhere: no variables of the person's own, UTC, no animation."""

import time
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Protocol

import pytest
from textual import constants
from textual.app import App

from tests.tui.harness import Harness, open_screen
from tests.tui.pilot import SettledPilot, loop_without_work

FOREIGN = ("NO_COLOR", "TMUX", "SSH_TTY", "SSH_CONNECTION", "DISPLAY", "WAYLAND_DISPLAY")

NOTIFICATION_S = 600.0
"""Seconds that a notification stays: on a loaded machine, five pass before a test has looked."""


@pytest.fixture(autouse=True)
def _same_everywhere(monkeypatch: pytest.MonkeyPatch):
    for name in FOREIGN:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PRAVAHA_CHARSET", "unicode")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.setattr(constants, "TEXTUAL_ANIMATIONS", "none")
    monkeypatch.setattr(App, "NOTIFICATION_TIMEOUT", NOTIFICATION_S)
    monkeypatch.setattr("textual.pilot.Pilot", SettledPilot)
    monkeypatch.setattr("textual.app.wait_for_idle", loop_without_work)
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


class OpenScreen(Protocol):
    def __call__(self, *answers, **options) -> AbstractAsyncContextManager[Harness]: ...


@pytest.fixture
def screen(tmp_path) -> OpenScreen:
    """`open_screen` over a store of the test's own."""
    return partial(open_screen, tmp_path)
