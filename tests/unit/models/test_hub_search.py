"""Search of a hub: a loopback one stands in for it."""

import pytest

from engine.api.errors import FetchError
from engine.models.hub_files import gguf_models
from engine.models.hub_search import FoundFile, FoundRepository, list_files, search_hub
from tests.fakes.hub_server import serve_hub

REPOSITORY = "org/tiny-llama"


@pytest.fixture
def hub(monkeypatch):
    files = {
        "tiny-Q8_0.gguf": b"x" * 80,
        "tiny-Q4_K_M.gguf": b"x" * 40,
        "big/tiny-F16-00001-of-00002.gguf": b"x" * 100,
        "big/tiny-F16-00002-of-00002.gguf": b"x" * 60,
        "half/tiny-00001-of-00002.gguf": b"x",
        "mmproj-tiny.gguf": b"x",
        "README.md": b"#",
    }
    with serve_hub(REPOSITORY, files) as running:
        monkeypatch.setenv("HF_ENDPOINT", running.url)
        yield running


def test_repositories_are_found_by_words(hub):
    hub.found = [
        {"id": "org/tiny-llama", "downloads": 1200, "gated": False},
        {"id": "org/closed", "downloads": 7, "gated": "manual"},
        {"id": "../../etc", "downloads": 1},
        {"id": "a/b:c", "downloads": 1},
        {"downloads": 1},
        "org/text",
    ]
    assert search_hub("tiny llama") == (
        FoundRepository("org/tiny-llama", 1200, False),
        FoundRepository("org/closed", 7, True),
    )
    assert hub.searched == ["tiny llama"]


def test_the_models_of_a_repository_are_listed_with_their_sizes(hub):
    assert list_files(REPOSITORY) == (
        FoundFile("org/tiny-llama:tiny-Q4_K_M.gguf", "tiny-Q4_K_M", 40),
        FoundFile("org/tiny-llama:tiny-Q8_0.gguf", "tiny-Q8_0", 80),
        FoundFile("org/tiny-llama:big/tiny-F16-00001-of-00002.gguf", "big/tiny-F16", 160),
    )


def test_what_is_not_there_is_one_sentence(hub, monkeypatch):
    with pytest.raises(FetchError, match=r"The hub has no model org/other, or it is private\."):
        list_files("org/other")
    hub.files = {"README.md": b"#"}
    with pytest.raises(FetchError, match=r"org/tiny-llama has no GGUF files\."):
        list_files(REPOSITORY)
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(FetchError, match="The hub cannot be searched: "):
        search_hub("x")
    with pytest.raises(FetchError, match="org/tiny-llama cannot be read: "):
        list_files(REPOSITORY)


def test_paths_that_cannot_be_stored_are_left_out():
    assert gguf_models({"../a.gguf": 1, "a\x1b.gguf": 1, "b.GGUF": 2}) == {"b.GGUF": 2}


def test_an_answer_of_another_form_is_one_sentence(hub):
    hub.found = {"error": "no"}
    with pytest.raises(FetchError, match=r"cannot be searched: its answer is no list of models\."):
        search_hub("x")
    hub.found = [{"id": "org/a", "downloads": "many"}, {"id": "org/b", "downloads": -4}]
    assert [one.downloads for one in search_hub("x")] == [0, 0]
