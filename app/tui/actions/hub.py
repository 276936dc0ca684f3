"""Downloading models from a hub: `/download`, and the key in the list of models.

It joins the panes: `show` draws the progress of the download, and loads the model when it is installed.
"""

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from app.runtime.model_hub import Download, ModelHub
from app.tui.actions.models import ModelActions
from app.tui.chat_screen import ChatScreen
from app.tui.frame import Frame
from app.tui.glyphs import Glyphs
from app.tui.widgets.hub_screen import HubScreen
from engine.api.errors import InvalidRequest

if TYPE_CHECKING:
    from engine.models.hub_search import FoundFile, FoundRepository

_NOT_HERE = "Models are downloaded where the engine runs: run `pravaha models add` there."


class HubActions:
    """Searches and downloads.

    Args:
        models: loads what was downloaded.
        hub: None if the engine is that of a server, and in a replay.
    """

    def __init__(
        self, screen: ChatScreen, models: ModelActions, hub: ModelHub | None, glyphs: Glyphs
    ) -> None:
        self._screen = screen
        self._models = models
        self._hub = hub
        self._glyphs = glyphs
        self._shown: Download | None = None
        if hub is not None:
            hub.on_change(screen.wake)

    def open(self, words: str = "") -> None:
        """Open the search, for words at once if there are some.

        Raises:
            InvalidRequest: models cannot be downloaded from here.
        """
        hub = self._required()
        model = self._screen.client.snapshot().model
        free = hub.free_memory()
        if free is not None and model is not None:
            free += model.weight_bytes  # it is unloaded first
        dialog = HubScreen(
            words,
            self._glyphs,
            search=self._search,
            files=self._files,
            start=hub.start,
            stop=hub.cancel,
            free=free,
        )
        self._shown = None
        self._screen.open_dialog(dialog)
        self._screen.draw_all()

    @property
    def in_view(self) -> bool:
        """Whether there is a download to look at."""
        return self._hub is not None and self._hub.download is not None

    def show(self, frame: Frame) -> bool:
        """Draw the progress; at the end load the model, or say that it is installed."""
        download = self._hub.download if self._hub is not None else None
        if download is None or download == self._shown:
            return False
        before, self._shown = self._shown, download
        dialog = self._screen.dialog
        is_open = isinstance(dialog, HubScreen)
        if isinstance(dialog, HubScreen):
            dialog.show_download(download)
        if before is not None and before.running and not download.running:
            self._ended(download, is_open)
        return False

    def _ended(self, download: Download, is_open: bool) -> None:
        if download.name and is_open:
            dialog = self._screen.dialog
            if isinstance(dialog, HubScreen):
                dialog.dismiss(None)
            self._models.switch(download.name)
        elif download.name:
            self._screen.notify_safely(
                f"{download.name} is installed; /model {download.name} loads it."
            )
        elif not is_open:
            self._screen.notify_safely(download.error, "warning")

    async def _search(self, words: str) -> "Sequence[FoundRepository]":
        return await asyncio.to_thread(self._required().search, words)

    async def _files(self, repository: str) -> "Sequence[FoundFile]":
        return await asyncio.to_thread(self._required().files, repository)

    def _required(self) -> ModelHub:
        if self._hub is None:
            raise InvalidRequest(_NOT_HERE)
        return self._hub
