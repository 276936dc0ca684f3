"""`ModelHub`: search of a Hugging Face hub, and one download at a time, for a screen.

Searching waits for the network: call it off the event loop. A download runs on a thread of its own, which
the program does not wait for; what has arrived is kept, and the next download of the same model goes on
from there.
"""

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from engine.api.errors import FetchInterrupted, InvalidRequest, PravahaError
from engine.models.progress import FetchCancelled, FetchProgress

if TYPE_CHECKING:
    from engine.models.hub_search import FoundFile, FoundRepository
    from engine.models.store import ModelStore

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Download:
    """The last download.

    Attributes:
        source: what is downloaded, as `ModelStore.add` takes it.
        stage: `download` or `verify`.
        done, total: bytes; a total of 0 is not known yet.
        running: whether it goes on.
        cancelled: whether it was told to stop.
        name: of the installed model; empty before.
        error: why it ended without one; empty otherwise.
    """

    source: str
    stage: str = "download"
    done: int = 0
    total: int = 0
    running: bool = True
    cancelled: bool = False
    name: str = ""
    error: str = ""

    @property
    def share(self) -> float:
        """The part that is done, from 0 to 1."""
        return self.done / self.total if self.total else 0.0


def open_hub(folder: Path) -> "ModelHub":
    """The hub, with the models of this machine in a folder."""
    from engine.memory.host import available_memory
    from engine.models.store import ModelStore

    def check(path: Path) -> None:
        from engine.executors.open_model import open_model  # loads the Rust core

        open_model(path)

    def free() -> int | None:
        try:
            return available_memory()
        except OSError:
            return None

    return ModelHub(ModelStore(folder, check=check), free_memory=free)


class ModelHub:
    """Thread-safe.

    Args:
        store: where models are installed.
        free_memory: returns the bytes that a model may take; None if that is not known.
    """

    def __init__(
        self, store: "ModelStore", *, free_memory: Callable[[], int | None] = lambda: None
    ) -> None:
        self._store = store
        self._free_memory = free_memory
        self._download: Download | None = None
        self._lock = threading.Lock()  # guards the download
        self._on_change: Callable[[], None] = lambda: None

    def on_change(self, callback: Callable[[], None]) -> None:
        """Call `callback` when the download has gone on; on any thread."""
        self._on_change = callback

    def search(self, words: str) -> "Sequence[FoundRepository]":
        """See `search_hub`; blocks."""
        from engine.models.hub_search import search_hub

        return search_hub(words)

    def files(self, repository: str) -> "Sequence[FoundFile]":
        """See `list_files`; blocks."""
        from engine.models.hub_search import list_files

        return list_files(repository)

    def free_memory(self) -> int | None:
        """Bytes that a model may take, estimated; None if that is not known."""
        return self._free_memory()

    @property
    def download(self) -> Download | None:
        """The running download, or the last one; None before the first."""
        return self._download

    def start(self, source: str) -> None:
        """Begin a download, or go on with one that was stopped.

        Raises:
            InvalidRequest: one is running.
        """
        with self._lock:
            if self._download is not None and self._download.running:
                raise InvalidRequest(f"{self._download.source} is being downloaded: stop it first.")
            self._download = Download(source)
        self._on_change()
        threading.Thread(
            target=self._run, args=(source,), name="pravaha-download", daemon=True
        ).start()

    def cancel(self) -> None:
        """Stop the download at its next block; what has arrived is kept. No effect if none is running."""
        with self._lock:
            if self._download is not None and self._download.running:
                self._download = replace(self._download, cancelled=True)
        self._on_change()

    def _run(self, source: str) -> None:
        try:
            model = self._store.add(source, progress=self._report)
        except FetchInterrupted as error:
            self._change(running=False, error=str(error))
        except PravahaError as error:
            self._change(running=False, cancelled=False, error=str(error))
        except Exception as error:
            log.exception("the download of %s failed", source)
            self._change(running=False, cancelled=False, error=f"{type(error).__name__}: {error}.")
        else:
            self._change(running=False, cancelled=False, name=model.name)

    def _report(self, progress: FetchProgress) -> None:
        if self._download is not None and self._download.cancelled:
            raise FetchCancelled
        self._change(stage=progress.stage, done=progress.done, total=progress.total)

    def _change(self, **changes: object) -> None:
        with self._lock:
            if self._download is not None:
                self._download = replace(self._download, **changes)  # type: ignore[arg-type]
        self._on_change()
