from pathlib import Path

import pytest

from engine.retrieval.library.library import Library
from tests.fakes.word_embedder import WordEmbedder


@pytest.fixture
def embedder():
    return WordEmbedder()


@pytest.fixture
def library(tmp_path, embedder):
    with Library(tmp_path / "retrieval", embedder) as library:
        yield library


@pytest.fixture
def collection(library):
    return library.create("docs")


@pytest.fixture
def folder(tmp_path) -> Path:
    """Two documents: Markdown with sections, and plain text."""
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "animals.md").write_text(
        "# Animals\n\n## Quokka\n\nThe quokka is a small wallaby that lives on Rottnest Island.\n\n"
        "## Heron\n\nThe heron waits in shallow water for fish — patiently.\n"
    )
    (folder / "köche.txt").write_text("A chef sharpens knives every morning; süß und salzig.\n")
    return folder
