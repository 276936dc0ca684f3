"""The dialog that searches a hub for models, lists the files of one, and shows a download."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, ClassVar
from urllib.parse import urlsplit

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import Input, OptionList

from app.runtime.model_hub import Download
from app.text.safe_text import safe_line
from app.tui.glyphs import Glyphs
from app.tui.textual_workarounds.one_line import OneLine
from app.tui.textual_workarounds.paged_options import PagedOptions
from app.tui.view.content import to_content
from app.tui.view.hub_lines import build_download, build_file, build_repository
from app.tui.view.spans import Line, Span
from app.tui.widgets.dialog import Dialog
from app.tui.widgets.lines import Lines
from engine.api.errors import PravahaError

if TYPE_CHECKING:
    from engine.models.hub_search import FoundFile, FoundRepository

_ADVICE = "enter searches the hub for models in GGUF; org/name lists the files of one"


class HubScreen(Dialog[None]):
    """Closes with escape; a download goes on.

    Args:
        words: what to search for at once; empty to wait for words.
        search: finds repositories.
        files: lists the models of a repository.
        start: begins a download.
        stop: stops it.
        free: bytes that a model may take; None if that is not known.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        ("escape", "back", "back"),
        ("down", "step(1)", "next"),
        ("up", "step(-1)", "previous"),
        ("pagedown", "step(5)", "further"),
        ("pageup", "step(-5)", "back"),
        Binding("ctrl+x", "stop", "stop", priority=True),
    ]

    def __init__(
        self,
        words: str,
        glyphs: Glyphs,
        *,
        search: "Callable[[str], Awaitable[Sequence[FoundRepository]]]",
        files: "Callable[[str], Awaitable[Sequence[FoundFile]]]",
        start: Callable[[str], None],
        stop: Callable[[], None],
        free: int | None,
    ) -> None:
        super().__init__()
        self._words = words
        self._glyphs = glyphs
        self._search = search
        self._list = files
        self._start = start
        self._stop = stop
        self._free = free
        self._searched = ""
        self._repositories: Sequence[FoundRepository] = ()
        self._files: Sequence[FoundFile] = ()

    def compose(self) -> ComposeResult:
        """The words above what they find, and the download below."""
        with Vertical(id="query-box") as box:
            box.border_title = "Download a model"
            box.border_subtitle = "enter searches and takes, esc goes back"
            yield OneLine(
                self._words, placeholder="words, or org/name", id="query-input", compact=True
            )
            yield Lines(id="query-note")
            found = PagedOptions(id="query-found", compact=True, markup=False)
            found.can_focus = False  # keys stay with the input; up and down move over the items
            yield found
            yield Lines(id="hub-download")

    def on_mount(self) -> None:
        """Begin to type, or search at once."""
        self.query_one(Input).focus()
        self._note(_ADVICE)
        if self._words.strip():
            self._begin(self._words)

    def show_download(self, download: Download | None) -> None:
        """Show how far the download is, or how it ended."""
        if not self.is_mounted or download is None:
            return
        lines = build_download(download, self._glyphs, self._cells)
        if download.running:
            lines.append((Span("ctrl+x stops it; what has arrived is kept", "$faint"),))
        self.query_one("#hub-download", Lines).show_lines([(), *lines])

    # Keys.

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        words = event.value.strip()
        if words and words != self._searched:
            self._begin(words)
        else:
            self._take(self.query_one(OptionList).highlighted)

    @on(OptionList.OptionSelected)
    def _clicked(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self._take(event.option_index)

    def action_step(self, rows: int) -> None:
        """Move over the items."""
        options = self.query_one(OptionList)
        if options.option_count:
            at = (options.highlighted or 0) + rows
            options.highlighted = min(max(at, 0), options.option_count - 1)

    def action_back(self) -> None:
        """From files back to the repositories; else close."""
        if self._files and self._repositories:
            self._files = ()
            self._show_repositories()
        else:
            self.dismiss(None)

    def action_stop(self) -> None:
        """Stop the download."""
        self._stop()

    # Steps.

    def _begin(self, words: str) -> None:
        self._searched = words.strip()
        words = _without_address(self._searched)
        self._files = self._repositories = ()
        self._show([], f"searching for {safe_line(words)} …")
        work = self._find_files(words) if _is_repository(words) else self._find(words)
        self.run_worker(work, group="hub", exclusive=True, exit_on_error=False)

    def _take(self, at: int | None) -> None:
        if at is None:
            return
        if self._files:
            if at < len(self._files):
                try:
                    self._start(self._files[at].hub_id)
                except PravahaError as error:
                    self._note(safe_line(str(error)), "$warning")
        elif at < len(self._repositories):
            repository = self._repositories[at].repository
            self._note(f"reading {repository} …")
            self.run_worker(
                self._find_files(repository), group="hub", exclusive=True, exit_on_error=False
            )

    async def _find(self, words: str) -> None:
        try:
            self._repositories = await self._search(words)
        except PravahaError as error:
            self._searched = ""  # enter tries again
            self._show([], safe_line(str(error)), "$error")
            return
        self._show_repositories()

    async def _find_files(self, repository: str) -> None:
        try:
            self._files = await self._list(repository)
        except PravahaError as error:
            if not self._repositories:
                self._searched = ""
            self._note(safe_line(str(error)), "$error")
            return
        rows = [build_file(one, self._free, self._cells) for one in self._files]
        self._show(rows, f"{safe_line(repository)}: enter downloads and loads it")

    def _show_repositories(self) -> None:
        rows = [build_repository(one, self._cells) for one in self._repositories]
        self._show(rows, "enter lists the files" if rows else "the hub has no such model in GGUF")

    def _show(self, rows: Sequence[Line], note: str, style: str = "$faint") -> None:
        options = self.query_one(OptionList)
        options.set_options([to_content([row]) for row in rows])
        if rows:
            options.highlighted = 0
        self._note(note, style)

    def _note(self, text: str, style: str = "$faint") -> None:
        self.query_one("#query-note", Lines).show_lines([(Span(text, style),)])

    @property
    def _cells(self) -> int:
        return max(40, self.query_one(OptionList).scrollable_content_region.width - 2)


def _without_address(words: str) -> str:
    """The repository in an address from a browser, or before a file; other words as they are."""
    if "://" in words:
        parts = [part for part in urlsplit(words).path.split("/") if part]
        return "/".join(parts[:2]) or words
    return words.partition(":")[0] if _is_repository(words) else words


def _is_repository(words: str) -> bool:
    owner, slash, name = words.partition("/")
    return bool(owner and slash and name) and not any(one.isspace() for one in words)
