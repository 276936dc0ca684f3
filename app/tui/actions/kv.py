"""Keys for the KV of a path: pin it, warm it, show its blocks. Notifications give the engine's figures."""

from concurrent.futures import Future
from dataclasses import dataclass

from app.tui.chat_screen import ChatScreen
from app.tui.frame import Frame
from app.tui.marks import Marks
from app.tui.screen_layout import ScreenLayout
from app.tui.selection import Selection
from app.tui.view.kv_words import (
    build_pinned,
    build_shared,
    build_shown,
    build_unpinned,
    build_warmed,
)
from app.tui.widgets.kv_pane import KvPane
from engine.api.errors import InvalidRequest, PravahaError
from engine.api.events import (
    Event,
    PrefixHit,
    PrefixPinned,
    PrefixUnpinned,
    RequestFinished,
    RequestForked,
)

_PATIENCE_S = 10.0
"""After so many seconds without an answer of the engine none is expected any more."""


@dataclass(slots=True)
class _Warming:
    """A request that computes KV only.

    Attributes:
        submitted: fails if the engine refuses it.
        cached: tokens that it found in the pool.
    """

    submitted: "Future[str]"
    cached: int = 0


class KvActions:
    """Acts on the path to the selected node. A pane without a widget: `show` follows the events."""

    in_view = True

    def __init__(
        self, screen: ChatScreen, selection: Selection, layout: ScreenLayout, marks: Marks
    ) -> None:
        self._screen = screen
        self._selection = selection
        self._layout = layout
        self._marks = marks
        self._pins: dict[str, str] = {}  # node id → pin id
        self._pinning: set[str] = set()  # pins and unpins whose event has not arrived
        self._warming: dict[str, _Warming] = {}
        self._shown_paths: list[tuple[int, ...]] = []  # wait for their residency
        self._next_event: int | None = None
        self._acted_at: float | None = None

    async def pin(self) -> None:
        """Pin the path to the node, or end its pin."""
        node_id = self._selection.target()
        self._check_model(node_id)
        self._follow()
        pin_id = self._pins.pop(node_id, None)
        if pin_id is None:
            pin_id = self._screen.client.pin(self._screen.session.tokens.prompt_ids(node_id))
            self._pins[node_id] = pin_id
        else:
            self._screen.client.unpin(pin_id)
        self._pinning.add(pin_id)

    async def warm(self) -> None:
        """Compute the KV of the path to the node."""
        node_id = self._selection.target()
        self._check_model(node_id)
        self._follow()
        request_id, submitted = self._screen.session.tokens.warm(node_id)
        self._warming[request_id] = _Warming(submitted)

    async def show_blocks(self) -> None:
        """Open the KV map with the blocks of the path to the node highlighted.

        With two or more marked messages: the blocks of the paths to them, and which of them are shared.
        """
        marks, session = self._marks, self._screen.session
        marks.keep(session.tree.__contains__)
        marked = [one for one in marks.ids if session.tree[one].pruned_at is None]
        nodes = marked if len(marked) > 1 else [self._selection.target()]
        for node_id in nodes:
            self._check_model(node_id)
        paths = [session.tokens.prompt_ids(node_id) for node_id in nodes]
        self._follow()
        if self._layout.pane != "kv":
            self._layout.open_pane("kv")
        self._shown_paths = paths

    def show(self, frame: Frame) -> bool:
        """Report what the engine did; True while an answer is expected."""
        self._show_paths()
        self._drop_refused()
        if self._pinning or self._warming or self._pins:
            batch = self._screen.client.events(self._next_event or 0)
            self._next_event = batch.next
            for event in batch.events:
                self._report(event)
        expected = bool(self._pinning or self._warming) or bool(self._shown_paths)
        if not expected:
            self._acted_at = None
            return False
        if self._acted_at is None:
            self._acted_at = frame.now
        return frame.now - self._acted_at < _PATIENCE_S

    def _check_model(self, node_id: str) -> None:
        """Refuse a node of another model than that of the open branch, whose KV is shown.

        Raises:
            InvalidRequest: it is another's.
        """
        model = self._screen.session.model
        if not model.shows(node_id):
            raise InvalidRequest(
                f"The KV map is that of {model.current}; another model goes on here: open its branch first."
            )

    def _follow(self) -> None:
        """Read events from now on."""
        if not (self._pinning or self._warming or self._pins):
            self._next_event = self._screen.client.events(self._next_event or 0).next
        self._acted_at = None
        self._screen.draw_all()

    def _drop_refused(self) -> None:
        for request_id, warming in list(self._warming.items()):
            if warming.submitted.done() and (error := warming.submitted.exception()) is not None:
                del self._warming[request_id]
                self._screen.notify_safely(str(error), "warning")

    def _show_paths(self) -> None:
        try:
            answers = [self._screen.client.residency(ids) for ids in self._shown_paths]
        except PravahaError as error:
            self._shown_paths = []
            self._screen.notify_safely(str(error), "warning")
            return
        found = [one for one in answers if one is not None]
        if not found or len(found) < len(answers):
            return
        self._shown_paths = []
        self._screen.main.query_one(KvPane).light(*(one.blocks for one in found))
        several = len(found) > 1
        self._screen.notify_safely(
            build_shared(found, self._block_size) if several else build_shown(found[0])
        )

    def _report(self, event: Event) -> None:
        match event:
            case PrefixPinned(pin_id=pin_id) if pin_id in self._pinning:
                self._pinning.discard(pin_id)
                if not event.blocks:
                    self._forget(pin_id)
                self._screen.notify_safely(build_pinned(event, self._block_size))
            case PrefixUnpinned(pin_id=pin_id) if pin_id in self._pinning or self._forget(pin_id):
                self._pinning.discard(pin_id)
                self._screen.notify_safely(
                    build_unpinned(event), "warning" if event.dropped else "information"
                )
            case PrefixHit(request_id=name) | RequestForked(request_id=name):
                if name in self._warming:
                    self._warming[name].cached = event.tokens
            case RequestFinished(request_id=name) if name in self._warming:
                self._screen.notify_safely(build_warmed(event, self._warming.pop(name).cached))

    def _forget(self, pin_id: str) -> bool:
        """Whether it was one of ours."""
        nodes = [node for node, one in self._pins.items() if one == pin_id]
        for node in nodes:
            del self._pins[node]
        return bool(nodes)

    @property
    def _block_size(self) -> int:
        return self._screen.client.snapshot().blocks.block_size
