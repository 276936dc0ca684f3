"""The list of models: to load one in place of the other, or to choose between several for a branch.

Those that cannot be loaded are listed with the reason.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from app.tui.textual_workarounds.paged_options import PagedOptions
from app.tui.view.content import to_content
from app.tui.view.model_lines import build_model, build_served_model
from app.tui.view.spans import Span
from app.tui.widgets.dialog import Dialog
from app.tui.widgets.lines import Lines
from engine.api.available_model import AvailableModel
from engine.api.snapshot import EngineState
from engine.runtime.model_change import CHANGE_DRAIN_S

CELLS = 88
Change = Literal["load", "unload", "reload"]
"""What is done to one of several models."""


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
        ("l", "change('load')", "load"),
        ("u", "change('unload')", "unload"),
        ("r", "change('reload')", "load again"),
    ]

    def __init__(
        self,
        about: str,
        requests: int,
        *,
        download: Callable[[], None] | None = None,
        change: Callable[[Change, str], None] | None = None,
        again: bool = False,
    ) -> None:
        """Open before the models are known; call `show_models` then.

        Args:
            about: a sentence about the loaded model.
            requests: number of live requests, which a change would wait for.
            download: opens the search for further models; None if there is none.
            change: begins to change one of several models; None if one model is loaded in place of another.
            again: whether Enter has the same message answered again, also by the loaded model.
        """
        super().__init__()
        self._download = download
        self._change = change
        self._again = again
        self._about = about
        self._requests = requests
        self._models: dict[str, AvailableModel] = {}

    def compose(self) -> ComposeResult:
        """The list over a transparent screen."""
        with Vertical(id="model-box") as box:
            box.border_title = "Model"
            box.border_subtitle = f"enter {self._purpose}, esc goes back"
            yield Lines(id="model-loaded")
            yield PagedOptions(id="model-list", compact=True)
            yield Lines(id="model-note")

    def on_mount(self) -> None:
        """Say that the list is being read."""
        self.query_one("#model-loaded", Lines).show_lines([(Span(self._about, "$muted"),), ()])
        self._note("Reading the installed models …")

    def show_models(self, models: Sequence[AvailableModel]) -> None:
        """Fill the list and highlight the loaded model."""
        if models == list(self._models.values()):
            return
        options = self.query_one(OptionList)
        highlighted = options.highlighted if self._models else None
        self._models = {model.name: model for model in models}
        build = build_model if self._change is None else build_served_model
        options.clear_options()
        options.add_options(
            Option(
                to_content(build(model, CELLS - 6)),
                id=model.name,
                disabled=not model.fits,
            )
            for model in models
        )
        loaded = [index for index, model in enumerate(models) if model.loaded]
        if highlighted is None and loaded:
            highlighted = loaded[0]
        options.highlighted = highlighted
        options.focus()
        self._note(self._advice())

    @property
    def models(self) -> Sequence[AvailableModel]:
        """The models as they are shown."""
        return list(self._models.values())

    @property
    def changes(self) -> bool:
        """Whether one of the models is being changed, so that its row will be another soon."""
        moving = (EngineState.LOADING.value, EngineState.DRAINING.value)
        return any(model.status in moving for model in self._models.values())

    def show_problem(self, problem: str) -> None:
        """Say why the models cannot be listed."""
        self._note(problem)

    @property
    def _purpose(self) -> str:
        if self._again:
            return "answers again"
        return "loads" if self._change is None else "answers this branch"

    def _advice(self) -> str:
        more = "`pravaha models add` installs" if self._download is None else "d downloads"
        if not self._models:
            return f"No models are installed: {more} one."
        if self._change is not None:
            return f"l loads, u unloads, r loads again; no answer is dropped. {more} more."
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
        if self._change is None and (name := self._highlighted()) is not None:
            self._pick(name, 0.0)

    def action_change(self, change: Change) -> None:
        """Load, unload or reload the highlighted one of several models."""
        if self._change is not None and (name := self._highlighted()) is not None:
            self._change(change, name)

    def _highlighted(self) -> str | None:
        options = self.query_one(OptionList)
        if options.highlighted is None:
            return None
        return options.get_option_at_index(options.highlighted).id

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
            same = model.loaded and not self._again
            self._close(None if same else PickedModel(model.name, drain_s))

    def _close(self, picked: PickedModel | None) -> None:
        if self.is_current:  # a second Enter may arrive before this screen is removed
            self.dismiss(picked)
