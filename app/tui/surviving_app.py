"""`SurvivingApp`: an exception in a handler, action, watcher, timer, worker or drawing does not end the app.

Textual ends the app at the first unhandled exception, and with it the answer that is being generated.
Here it is logged with its traceback, `on_failure` is called once for each kind, and the app continues:

* every message of every widget is dispatched under a guard, because a message loop in Textual 8.2.8 ends
  after an exception even if the app continues;
* a widget whose rows cannot be rendered is drawn empty, so that the rest of the screen is still drawn;
* everything else that Textual catches arrives in `_handle_exception`.

Until `survive_failures` is called an exception ends the app, as it does in Textual.
Cost: two closures for each widget; repeated failures are logged at their 1st, 2nd, 4th, 8th, ... time, so
that one in every frame fills neither the log nor the screen.
"""

import logging
from collections import Counter
from collections.abc import Callable
from typing import Any

from textual.app import App
from textual.geometry import Region
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget
from textual.worker import WorkerFailed

log = logging.getLogger(__name__)


class Failures:
    """Counts exceptions by kind: type and place of origin."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str, int]] = Counter()
        self.first: list[BaseException] = []
        """One exception of each kind, in order of appearance."""

    def record(self, error: BaseException) -> bool:
        """Log the exception unless its kind was logged recently; whether the kind is new."""
        kind = _kind(error)
        self._counts[kind] += 1
        count = self._counts[kind]
        if count & (count - 1) == 0:  # 1, 2, 4, 8, ...
            log.error(
                "the screen continues after exception no. %d of its kind", count, exc_info=error
            )
        if count == 1:
            self.first.append(error)
        return count == 1


class SurvivingApp(App[None]):
    """See the module's description.

    Attributes:
        failures: the exceptions that were survived.
    """

    def __init__(self, **options: Any) -> None:
        self.failures = Failures()
        self._survives = False
        super().__init__(**options)

    def survive_failures(self) -> None:
        """Continue after exceptions from now on."""
        self._survives = True

    def on_failure(self, error: BaseException) -> None:
        """Called for the first exception of each kind."""

    def survive(self, error: BaseException) -> bool:
        """Record an exception; False if it must end the app."""
        if isinstance(error, WorkerFailed):
            error = error.error
        if not (self._survives and self._running and not self._exit):
            return False
        if self.failures.record(error):
            try:
                self.on_failure(error)
            except Exception:  # reporting must not fail in turn
                log.exception("a failure could not be reported")
        return True

    def _handle_exception(self, error: Exception) -> None:
        if not self.survive(error):
            super()._handle_exception(error)

    async def _dispatch_message(self, message: Message) -> None:
        try:
            await super()._dispatch_message(message)
        except Exception as error:
            if not self.survive(error):
                raise

    def _register_child(
        self, parent: Any, child: Widget, before: int | None, after: int | None
    ) -> None:
        self._guard(child)
        super()._register_child(parent, child, before, after)

    def _start_widget(self, parent: Widget, widget: Widget) -> None:
        self._guard(widget)
        super()._start_widget(parent, widget)

    def _guard(self, widget: Widget) -> None:
        """Replace the widget's two methods that all of its code is called through."""
        if "_dispatch_message" in vars(widget):  # a screen that is shown again
            return
        dispatch, render = widget._dispatch_message, widget.render_lines
        # Textual has no hook at these places: instance attributes precede the class's methods.
        widget._dispatch_message = self._guarded_dispatch(dispatch)  # type: ignore[assignment,method-assign]
        widget.render_lines = self._guarded_render(render)  # type: ignore[assignment,method-assign]

    def _guarded_dispatch(self, dispatch: Callable[[Message], Any]) -> Callable[[Message], Any]:
        async def guarded(message: Message) -> None:
            try:
                await dispatch(message)
            except Exception as error:
                if not self.survive(error):
                    raise

        return guarded

    def _guarded_render(
        self, render: Callable[[Region], list[Strip]]
    ) -> Callable[[Region], list[Strip]]:
        def guarded(crop: Region) -> list[Strip]:
            try:
                return render(crop)
            except Exception as error:
                if not self.survive(error):
                    raise
                return [Strip.blank(crop.width)] * crop.height

        return guarded


def _kind(error: BaseException) -> tuple[str, str, int]:
    """The type of an exception and the file and line that raised it."""
    at = error.__traceback__
    while at is not None and at.tb_next is not None:
        at = at.tb_next
    where = ("", 0) if at is None else (at.tb_frame.f_code.co_filename, at.tb_lineno)
    return (type(error).__name__, *where)
