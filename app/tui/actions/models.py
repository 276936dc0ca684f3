"""Choosing and changing the engine's model from the screen.

The list and the change read model files, so they run on a worker thread; the screen stays responsive. What
follows (waiting for answers, loading, failure) is in the snapshot, which the panes draw.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine, Sequence

from app.slash.models import NOW, meant_model, read_model
from app.text.safe_text import safe_line
from app.tui.chat_screen import ChatScreen
from app.tui.frame import Frame
from app.tui.view.model_lines import build_answered_by, build_loaded
from app.tui.widgets.model_picker import ModelPicker, PickedModel
from app.tui.widgets.prompt import Prompt
from engine.api.available_model import AvailableModel
from engine.api.errors import ModelNotFound, PravahaError
from engine.api.snapshot import EngineState
from engine.conversations.tree import NodeKind

_FRESH_S = 10.0
"""Seconds after which the models are read again for completion."""


class ModelActions:
    """The model picker, `/model NAME`, and the hint about the model of a conversation.

    It joins the panes: `show` notices when another conversation is open, and when a chosen model is loaded.

    Args:
        on_model: called with the name of a model that was chosen and is loaded, to save it.
    """

    def __init__(self, screen: ChatScreen, on_model: Callable[[str], None]) -> None:
        self._screen = screen
        self._on_model = on_model
        self._hinted_for = ""  # the conversation last looked at
        self._chosen: str | None = None  # until it is loaded
        self._listed: Sequence[AvailableModel] | None = None
        self._listed_at = float("-inf")
        self._listing = False
        self._download: Callable[[], None] | None = None

    def offer_download(self, download: Callable[[], None] | None) -> None:
        """Let the picker open the search for further models; None where there is none."""
        self._download = download

    def choose(self) -> None:
        """Open the picker."""
        self._work(self._choose())

    def switch(self, argument: str) -> None:
        """Load the named model; `NAME now` stops running answers."""
        name, drain_s = read_model(argument)
        self._work(self._load(name, drain_s, typed=f"/model {argument}"))

    @property
    def in_view(self) -> bool:
        """Always: what it notices does not depend on what is visible."""
        return True

    def show(self, frame: Frame) -> bool:
        """Give the hint once for each conversation that is opened while a model is loaded."""
        session, model = frame.session, frame.snapshot.model
        loaded = frame.snapshot.state is EngineState.READY and not frame.snapshot.changes_model
        if loaded and model is not None and model.name == self._chosen:
            self._chosen = None
            self._on_model(model.name)
        if model is None or session.tree_id == self._hinted_for:
            return False
        self._hinted_for = session.tree_id
        answered = [
            node.model
            for node in session.path()
            if node.kind is NodeKind.ASSISTANT and node.model is not None
        ]
        if answered and answered[-1] != model.name and not session.answers.generating:
            self._work(self._hint(answered[-1]))
        return False

    def _picked(self, picked: PickedModel | None) -> None:
        if picked is not None:
            self._work(self._load(picked.name, picked.drain_s))

    async def _choose(self) -> None:
        if isinstance(self._screen.dialog, ModelPicker):
            return
        snapshot = self._screen.client.snapshot()
        picker = ModelPicker(
            build_loaded(snapshot.model),
            snapshot.running + snapshot.waiting,
            download=self._download,
        )
        await self._screen.open_dialog(picker, self._picked)
        try:
            models = await self._installed()
        except PravahaError as error:
            if picker.is_current:
                picker.show_problem(safe_line(str(error)))
            return
        if picker.is_current:
            picker.show_models(models)

    async def _load(self, name: str, drain_s: float, *, typed: str = "") -> None:
        """Load a model.

        Args:
            name: its name, or the beginning of only one.
            drain_s: seconds that running answers get.
            typed: the command, which returns to the prompt if there is no such model.
        """
        screen = self._screen
        running = screen.client.snapshot().running
        try:
            if typed:
                name = meant_model(name, await self._installed())
            await asyncio.to_thread(screen.client.load_model, name, drain_s=drain_s)
        except PravahaError as error:
            screen.notify_safely(str(error), "warning")
            prompt = screen.main.query_one(Prompt)
            if typed and isinstance(error, ModelNotFound) and not prompt.text:
                prompt.insert_unsent(typed)
        else:
            self._chosen = name
            if running and drain_s:
                screen.notify_safely(
                    f"Changing to {name} once running answers have finished, in {drain_s:.0f} s at "
                    f"the latest; /model {name}{NOW} stops them."
                )
        screen.wake()

    async def _hint(self, name: str) -> None:
        try:
            models = await self._installed()
        except PravahaError:
            return  # a hint is not worth an error
        if any(one.name == name for one in models):
            self._screen.notify_safely(build_answered_by(name))

    def installed(self) -> Sequence[AvailableModel] | None:
        """The installed models as they were when last read, for completion; None until they are.

        Reads them again if that is long ago; then the screen's clock is woken. Never blocks.
        """
        if not self._listing and time.monotonic() - self._listed_at > _FRESH_S:
            self._listing = True
            self._work(self._list())
        return self._listed

    async def _list(self) -> None:
        try:
            await self._installed()
        except PravahaError:
            self._listed = self._listed or ()
        finally:
            self._listing, self._listed_at = False, time.monotonic()
            self._screen.wake()

    async def _installed(self) -> Sequence[AvailableModel]:
        self._listed = await asyncio.to_thread(self._screen.client.models)
        return self._listed

    def _work(self, work: Coroutine[object, object, None]) -> None:
        self._screen.run_worker(work, group="models", exit_on_error=False)
