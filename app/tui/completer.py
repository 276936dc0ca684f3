"""`Completer`: what completes the text of the prompt, from the names that the screen knows.

Names that are not known yet are read in the background. It joins the panes: when they are read, the clock is
woken, and `show` completes the same text again.
"""

from collections.abc import Callable, Mapping, Sequence

from app.settings.shown_setting import ShownSetting
from app.slash.completion import Completion, Kind, complete
from app.slash.folder_names import FolderNames
from app.text.safe_text import safe_line
from app.tui.action_groups import ActionGroups
from app.tui.agent_names import AgentNames
from app.tui.chat_screen import ChatScreen
from app.tui.frame import Frame
from app.tui.view.model_lines import build_facts

MAX_LOOKS = 20
"""How often the same text is completed again: names that cannot be read are given up."""


class Completer:
    """A `KnownNames` of the screen.

    Args:
        settings: for `/settings`.
        on_more: called with what completes the same text when more names are known.
    """

    in_view = True

    def __init__(
        self,
        screen: ChatScreen,
        actions: ActionGroups,
        agent_names: AgentNames,
        settings: Sequence[ShownSetting],
        *,
        on_more: Callable[[Completion | None], None],
    ) -> None:
        self._screen = screen
        self._actions = actions
        self._agent_names = agent_names
        self._settings = settings
        self._on_more = on_more
        self._folders = FolderNames(screen.wake)
        self._before = ""
        self._looks = 0
        self._unread = False
        """Whether the last text asked for names that are being read."""

    @property
    def reading(self) -> bool:
        """Whether names are being read, so that more may complete the text soon."""
        return self._unread and self._looks < MAX_LOOKS

    def complete(self, before: str) -> Completion | None:
        """What completes the text before the cursor, as far as it is known."""
        self._looks = 0
        return self._look(before)

    def show(self, frame: Frame) -> bool:
        """Complete the text again if it asked for names that were not known."""
        if self._unread and self._looks < MAX_LOOKS:
            self._looks += 1
            self._on_more(self._look(self._before))
        return False

    def _look(self, before: str) -> Completion | None:
        self._before, self._unread = before, False
        return complete(before, self)

    # KnownNames.

    def of(self, kind: Kind) -> Mapping[str, str]:
        """The names of a kind, each with a few words about it."""
        actions = self._actions
        match kind:
            case "agent":
                if self._agent_names.begin(self._screen):
                    self._unread = True
                return {one["name"]: one["description"] for one in self._agent_names.known}
            case "branch":
                return dict.fromkeys(self._screen.session.tree.branches(), "")
            case "collection":
                names = actions.sources.names
                self._unread |= not names and actions.sources.reading
                return dict.fromkeys(names, "collection of documents")
            case "conversation":
                return {safe_line(tree.title): "" for tree in actions.listing.found}
            case "model":
                models = actions.models.installed()
                self._unread |= models is None
                return {one.name: build_facts(one) for one in models or ()}
            case "setting":
                return {one.name: one.value for one in self._settings}
            case "theme":
                return {
                    name: found.title
                    for name, found in actions.themes.files.items()
                    if found.theme is not None
                }

    def in_folder(self, folder: str) -> Sequence[str]:
        """The names in a folder, as far as they are read."""
        names = self._folders(folder)
        self._unread |= self._folders.reading
        return names
