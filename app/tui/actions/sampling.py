"""`/sampling`: show, edit, set and reset the sampling parameters of the open conversation."""

from app.slash.sampling import applies_otherwise, build_summary, change_sampling, value_of
from app.tui.chat_screen import ChatScreen
from app.tui.widgets.sampling_editor import SamplingEditor
from engine.api.generation_defaults import GenerationDefaults
from engine.conversations.branch_sampling import PARAMETERS
from engine.conversations.submission import default_max_tokens


class SamplingActions:
    """The sampling editor and the arguments of `/sampling`."""

    def __init__(self, screen: ChatScreen) -> None:
        self._screen = screen

    def run(self, argument: str) -> None:
        """Open the editor; with `NAME=VALUE …` set those; with `reset` leave all to the model.

        Raises:
            InvalidRequest: the argument is not in this form, or a value is out of range.
        """
        if not argument:
            self.edit()
            return
        change_sampling(self._screen.session, argument)
        self._tell()

    def edit(self, name: str = "") -> None:
        """Open the editor, at a parameter if one is named."""
        if isinstance(self._screen.dialog, SamplingEditor):
            return
        session, model = self._screen.session, self._screen.client.snapshot().model
        defaults = GenerationDefaults() if model is None else model.generation_defaults
        limit = None if model is None else default_max_tokens(model)
        editor = SamplingEditor(
            {name: value_of(session.sampling.current, name) for name in PARAMETERS},
            {
                name: applies_otherwise(session.sampling.default, defaults, name, max_tokens=limit)
                for name in PARAMETERS
            },
            session.sampling.change,
            first=name,
        )
        self._screen.open_dialog(editor, lambda applied: self._tell() if applied else None)

    def _tell(self) -> None:
        self._screen.notify_safely(build_summary(self._screen.session.sampling.current))
