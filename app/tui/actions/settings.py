"""`/settings`, and the settings that the palette finds: each is opened at its place."""

from collections.abc import Sequence

from app.settings.shown_setting import ShownSetting
from app.slash.names import meant
from app.tui.actions.models import ModelActions
from app.tui.actions.sampling import SamplingActions
from app.tui.actions.themes import ThemeActions
from app.tui.chat_screen import ChatScreen
from app.tui.widgets.settings_page import SettingsScreen
from engine.api.errors import InvalidRequest
from engine.conversations.branch_sampling import PARAMETERS


class SettingActions:
    """Opens settings: sampling parameters, model and theme where they are changed, all others in the list.

    Args:
        known: all settings; none in a replay.
    """

    def __init__(
        self,
        screen: ChatScreen,
        sampling: SamplingActions,
        models: ModelActions,
        themes: ThemeActions,
        known: Sequence[ShownSetting],
    ) -> None:
        self._screen = screen
        self._sampling = sampling
        self._models = models
        self._themes = themes
        self.known = known

    def open(self, name: str = "") -> None:
        """Open a setting by its name, or the beginning of only one; without one, the list.

        Raises:
            InvalidRequest: there is none; the sentence names those that are near.
        """
        if not self.known:
            raise InvalidRequest("A replay has no settings.")
        if name:
            wanted = name.replace(" ", "_").replace("-", "_")
            name = meant(wanted, [one.name for one in self.known], "setting")
        if name in PARAMETERS:
            self._sampling.edit(name)
        elif name == "model":
            self._models.choose()
        elif name == "theme":
            self._themes.choose()
        else:
            self._screen.open_dialog(SettingsScreen(self.known, name))
