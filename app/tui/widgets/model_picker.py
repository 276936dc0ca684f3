"""The list of installed models. Those that cannot be loaded are listed with the reason."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from app.tui.textual_workarounds.paged_options import PagedOptions
from app.tui.view.content import to_content
from app.tui.view.model_lines import build_model
from app.tui.view.spans import Span
from app.tui.widgets.dialog import Dialog
from app.tui.widgets.lines import Lines
from engine.api.available_model import AvailableModel
from engine.runtime.model_change import CHANGE_DRAIN_S

CELLS = 88


@dataclass(frozen=True, slots=True)
class PickedModel:
    """A choice: the model, and how long running answers may go on before they are cut off."""

    name: str
    drain_s: float


class ModelPicker(Dialog[PickedModel | None]):
    """Dismisses with the chosen model; with None after Esc, or for the loaded model."""

    BINDINGS: ClassVar = [
        ("escape", "leave", "back"),
        ("s", "now", "stop answers and load"),
        ("d", "download", "download more"),
    ]

    def __init__(
        self, about: str, requests: int, *, download: Callable[[], None] | None = None
    ) -> None:
        """Open before the models are known; call `show_models` then.

        Args:
            about: a sentence about the loaded model.
            requests: number of live requests, which a change would wait for.
            download: opens the search for further models; None if there is none.
        """
        super().__init__()
        self._download = download
        self._about = about
        self._requests = requests
        self._models: dict[str, AvailableModel] = {}

    def compose(self) -> ComposeResult:
        """The list over a transparent screen."""
        with Vertical(id="model-box") as box:
            box.border_title = "Model"
            box.border_subtitle = "enter loads, esc goes back"
            yield Lines(id="model-loaded")
            yield PagedOptions(id="model-list", compact=True)
            yield Lines(id="model-note")

    def on_mount(self) -> None:
        """Say that the list is being read."""
        self.query_one("#model-loaded", Lines).show_lines([(Span(self._about, "$muted"),), ()])
        self._note("Reading the installed models …")

    def show_models(self, models: Sequence[AvailableModel]) -> None:
        """Fill the list and highlight the loaded model."""
        self._models = {model.name: model for model in models}
        options = self.query_one(OptionList)
        options.clear_options()
        options.add_options(
            Option(
                to_content(build_model(model, CELLS - 6)), id=model.name, disabled=not model.fits
            )
            for model in models
        )
        loaded = [index for index, model in enumerate(models) if model.loaded]
        options.highlighted = loaded[0] if loaded else None
        options.focus()
        self._note(self._advice())

    def show_problem(self, problem: str) -> None:
        """Say why the models cannot be listed."""
        self._note(problem)

    def _advice(self) -> str:
        more = "`pravaha models add` installs" if self._download is None else "d downloads"
        if not self._models:
            return f"No models are installed: {more} one."
        if self._requests:
            return (
                f"{self._requests} running: enter lets them finish, for {CHANGE_DRAIN_S:.0f} s at most; "
                "s stops them now."
            )
        return f"Conversations stay open; {more} more."

    def _note(self, text: str) -> None:
        self.query_one("#model-note", Lines).show_lines([(), (Span(text, "$muted"),)])

    @on(OptionList.OptionSelected)
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self._pick(event.option.id, CHANGE_DRAIN_S)

    def action_now(self) -> None:
        """Stop running answers and load the highlighted model."""
        options = self.query_one(OptionList)
        if options.highlighted is not None:
            self._pick(options.get_option_at_index(options.highlighted).id, 0.0)

    def action_download(self) -> None:
        """Close and search for further models."""
        if self._download is not None and self.is_current:
            self._close(None)
            self._download()

    def action_leave(self) -> None:
        """Close without a choice."""
        self._close(None)

    def _pick(self, name: str | None, drain_s: float) -> None:
        model = self._models.get(name or "")
        if model is not None and model.fits:
            self._close(None if model.loaded else PickedModel(model.name, drain_s))

    def _close(self, picked: PickedModel | None) -> None:
        if self.is_current:  # a second Enter may arrive before this screen is removed
            self.dismiss(picked)
