"""`watch_changes`: changes that fall between two looks at the folders."""

import threading
from collections.abc import Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path

from engine.retrieval.indexing.watching import watch_changes
from engine.retrieval.store.records import Source

_GROUPS = 6  # about a second each, if nothing changes


def test_a_folder_that_is_back_when_it_is_looked_for_again_counts_as_changed(tmp_path):
    folder, elsewhere = tmp_path / "folder", tmp_path / "elsewhere"
    folder.mkdir()
    looks = 0

    def sources() -> list[Source]:
        nonlocal looks
        looks += elsewhere.exists()
        if looks == 2:  # the first look found that it had vanished
            elsewhere.rename(folder)
            looks = 3
        return [Source(str(folder))]

    with closing(watch_changes(sources, threading.Event())) as groups:
        next(groups)  # from here on, changes are noticed
        folder.rename(elsewhere)
        assert _arrives(groups, folder)
        assert _arrives(groups, folder)
        (folder / "new.txt").write_text("An okapi hides.")
        assert _arrives(groups, folder / "new.txt")


def _arrives(groups: Iterator[frozenset[str]], path: Path) -> bool:
    return any(str(path) in group for group in islice(groups, _GROUPS))
