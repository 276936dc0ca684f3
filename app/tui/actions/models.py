"""Choosing and changing the engine's model from the screen, or one of several models for a branch.

The list and the change read model files, so they run on a worker thread; the screen stays responsive. What
follows (waiting for answers, loading, failure) is in the snapshot, which the panes draw.

With one engine a chosen model is loaded in place of the other. With several, the choice is the branch's (see
`ChosenModel`), and a model that is not loaded is loaded beside the others.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace

from app.slash.models import NOW, meant_model, read_model
from app.text.continued_text import build_continues
from app.text.safe_text import safe_line
from app.tui.chat_screen import ChatScreen
from app.tui.frame import Frame
from app.tui.view.model_lines import (
    answer_models,
    build_answered_by,
    build_chosen,
    build_gone,
    build_loaded,
)
from app.tui.widgets.model_picker import Change, ModelPicker, PickedModel
from app.tui.widgets.prompt import Prompt
from engine.api.available_model import AvailableModel
from engine.api.errors import InvalidRequest, ModelNotFound, PravahaError
from engine.api.snapshot import EngineState
from engine.clients.model_set import ModelSet
from engine.runtime.model_change import CHANGE_DRAIN_S

_FRESH_S = 10.0
"""Seconds after which the models are read again for completion."""
_WATCH_S = 0.4
"""Seconds between two looks at models that are being changed, while the list is open."""
_CHANGES: dict[str, Change] = {"load": "load", "unload": "unload", "reload": "reload"}


class ModelActions:
    """The model picker, `/model NAME`, and the hints about the model of a conversation and one without turns.

    It joins the panes: `show` notices when another conversation is open, and when a chosen model is loaded.

    Args:
        on_model: called with the name of a model that was chosen and is loaded, to save it.
    """

    def __init__(self, screen: ChatScreen, on_model: Callable[[str], None]) -> None:
        self._screen = screen
        self._on_model = on_model
        self._hinted_for = ""  # the conversation last looked at
        self._told_about: str | None = None  # the loaded model last looked at
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
        self._work(self._choose(self._picked))

    def choose_for(self, picked: Callable[[str], None]) -> None:
        """Open the picker to have a message answered by another model, which `picked` gets."""
        self._work(self._choose(lambda one: None if one is None else picked(one.name), again=True))

    def switch(self, argument: str) -> None:
        """Load the named model, or let it answer the branch if there are several.

        `NAME now` stops running answers; `load NAME`, `unload NAME` and `reload NAME` are for several models.
        """
        word, _, rest = argument.partition(" ")
        typed = f"/model {argument}"
        if self._several is None:
            name, drain_s = read_model(argument)
            self._work(self._load(name, drain_s, typed=typed))
        elif word in _CHANGES and rest:
            self._work(self._change_named(_CHANGES[word], rest.strip(), typed))
        else:
            self._work(self._choose_named(argument, typed))

    async def load(self, name: str) -> bool:
        """Load a model in place of the only one; False if it was refused, which is shown."""
        return await self._load(name, CHANGE_DRAIN_S)

    async def other(self, answered_by: str | None) -> str | None:
        """The only loaded model beside that of an answer; None if there is none, or several."""
        if self._several is None:
            return None
        ready = [
            one.name for one in await self._installed() if one.status == EngineState.READY.value
        ]
        others = [name for name in ready if name != answered_by]
        return others[0] if len(others) == 1 else None

    async def meant(self, name: str) -> str:
        """The model that is called so, or whose name alone begins so.

        Raises:
            ModelNotFound: there is none, or several begin so.
        """
        return meant_model(name, await self._installed())

    @property
    def _several(self) -> ModelSet | None:
        return self._screen.session.model.several

    @property
    def in_view(self) -> bool:
        """Always: what it notices does not depend on what is visible."""
        return True

    def show(self, frame: Frame) -> bool:
        """Give the hints, once for each conversation opened while a model is loaded and once for a model."""
        session, model = frame.session, frame.snapshot.model
        loaded = frame.snapshot.state is EngineState.READY and not frame.snapshot.changes_model
        if loaded and model is not None and model.name == self._chosen:
            self._chosen = None
            self._on_model(model.name)
        if loaded and model is not None and model.name != self._told_about:
            self._told_about = model.name
            if model.continues_text:
                self._screen.notify_safely(build_continues(model))
        if model is None or session.tree_id == self._hinted_for:
            return False
        self._hinted_for = session.tree_id
        path, several = session.path(), session.model.several
        answered = answer_models(path)
        if several is not None:
            chosen = session.tree.model_after(node.id for node in reversed(path))
            if chosen is not None and not several.has(chosen):
                self._screen.notify_safely(build_gone(chosen, model.name))
        elif answered and answered[-1] != model.name and not session.answers.generating:
            self._work(self._hint(answered[-1]))
        return False

    def _picked(self, picked: PickedModel | None) -> None:
        if picked is None:
            return
        if self._several is None:
            self._work(self._load(picked.name, picked.drain_s))
        else:
            self._choose_for_branch(picked.name)

    def _choose_for_branch(self, name: str) -> None:
        """Let one of several models answer the open branch, and load it if it is not loaded."""
        screen, several = self._screen, self._several
        if several is None:
            return
        earlier = answer_models(screen.session.path())
        try:
            if not screen.session.model.choose(name):
                screen.notify_safely(f"{name} answers this branch already.")
                return
            waits = several.awaits(name)
        except PravahaError as error:
            screen.notify_safely(str(error), "warning")
            return
        screen.notify_safely(build_chosen(name, earlier, is_loaded=not waits))
        screen.draw_all()

    async def _choose_named(self, name: str, typed: str) -> None:
        try:
            if name.endswith(NOW):
                raise InvalidRequest(
                    f"With several models none is stopped for another: /model {name.removesuffix(NOW)}"
                )
            name = await self.meant(name)
        except PravahaError as error:
            self._refuse(error, typed)
        else:
            self._choose_for_branch(name)

    async def _change_named(self, change: Change, name: str, typed: str) -> None:
        try:
            name = await self.meant(name)
        except PravahaError as error:
            self._refuse(error, typed)
        else:
            await self._change(change, name)

    async def _change(self, change: Change, name: str) -> None:
        """Load, unload or reload one of several models, and say how it went."""
        screen, several = self._screen, self._several
        if several is None:
            return
        try:
            await asyncio.to_thread(getattr(several, change), name)
        except PravahaError as error:
            screen.notify_safely(str(error), "warning")
        screen.wake()
        picker = screen.dialog
        if isinstance(picker, ModelPicker):
            await self._watch(picker)

    async def _watch(self, picker: ModelPicker) -> None:
        """Show the state of the models while one of them changes and the list is open."""
        several = self._several
        while several is not None and picker.is_current:
            try:
                models = await asyncio.to_thread(several.refreshed, picker.models)
            except PravahaError:
                return
            if not picker.is_current:
                return
            marked = {one.name for one in picker.models if one.loaded}
            picker.show_models([replace(one, loaded=one.name in marked) for one in models])
            if not picker.changes:
                return
            await asyncio.sleep(_WATCH_S)

    async def _choose(
        self, picked: Callable[[PickedModel | None], None], *, again: bool = False
    ) -> None:
        if isinstance(self._screen.dialog, ModelPicker):
            return
        snapshot = self._screen.client.snapshot()
        picker = ModelPicker(
            build_loaded(snapshot.model),
            snapshot.running + snapshot.waiting,
            download=self._download,
            change=None
            if self._several is None
            else lambda change, name: self._work(self._change(change, name)),
            again=again,
        )
        await self._screen.open_dialog(picker, picked)
        try:
            models = await self._installed()
        except PravahaError as error:
            if picker.is_current:
                picker.show_problem(safe_line(str(error)))
            return
        if picker.is_current:
            picker.show_models(models)
            await self._watch(picker)

    async def _load(self, name: str, drain_s: float, *, typed: str = "") -> bool:
        """Load a model; False if it was refused.

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
            self._refuse(error, typed)
            screen.wake()
            return False
        else:
            self._chosen = name
            if running and drain_s:
                screen.notify_safely(
                    f"Changing to {name} once running answers have finished, in {drain_s:.0f} s at "
                    f"the latest; /model {name}{NOW} stops them."
                )
        screen.wake()
        return True

    def _refuse(self, error: PravahaError, typed: str) -> None:
        """Show an error; the command returns to the prompt if there is no such model."""
        self._screen.notify_safely(str(error), "warning")
        prompt = self._screen.main.query_one(Prompt)
        if typed and isinstance(error, ModelNotFound) and not prompt.text:
            prompt.insert_unsent(typed)

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

    def _work(self, work: Coroutine[object, object, object]) -> None:
        self._screen.run_worker(work, group="models", exit_on_error=False)
