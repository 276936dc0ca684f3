from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.api.errors import InvalidRequest
from engine.retrieval.library.collection import Collection
from engine.retrieval.search import hybrid
from engine.retrieval.search.hybrid import CANDIDATES
from tests.retrieval.search.toy_library import collection_of

FILES = {
    "port.txt": "The server listens on port 8000 by default.",
    "queue.txt": "A queue blocks when it is full.",
    "copy.txt": "The server listens on port 8000 by default!",
    "bread.txt": "Bread is baked from flour, water and the server's patience.",
}


@pytest.fixture(scope="module")
def collection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collection]:
    with collection_of(tmp_path_factory.mktemp("hybrid"), FILES) as made:
        yield made


def names(collection: Collection, query: str, **options: object) -> list[str]:
    return [Path(one.file).stem for one in collection.search(query, **options)]  # type: ignore[arg-type]


@pytest.mark.parametrize("mode", ["hybrid", "dense", "lexical"])
def test_the_fitting_passage_is_first(collection: Collection, mode: str):
    assert names(collection, "When does a queue block?", mode=mode)[0] == "queue"


def test_results_are_ranked_and_scored(collection: Collection):
    found = collection.search("port of the server")
    assert [one.rank for one in found] == list(range(1, len(found) + 1))
    assert found[0].score == max(one.score for one in found)
    assert found[0].lexical is not None


def test_every_hybrid_result_has_its_cosine(collection: Collection):
    found = collection.search("patience")
    assert all(one.dense is not None for one in found)
    bread = next(one for one in found if one.file.endswith("bread.txt"))
    dense = collection.search("patience", mode="dense")
    assert bread.dense == pytest.approx(dense[0].dense)


def test_a_lexical_search_embeds_nothing(collection: Collection):
    assert all(one.dense is None for one in collection.search("queue", mode="lexical"))


def test_a_copy_comes_after_what_is_new(collection: Collection, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(hybrid, "RELEVANCE_WEIGHT", 0.5)
    first, second = names(collection, "server port bread", k=2)
    assert {first, second} != {"port", "copy"}


def test_a_filter_applies_before_anything_is_ranked(collection: Collection):
    file = next(one.path for one in collection.documents() if one.path.endswith("bread.txt"))
    where = {"type": "eq", "key": "file", "value": file}
    assert names(collection, "port 8000", where=where) == ["bread"]
    assert names(collection, "port 8000", where=where, mode="dense") == ["bread"]


def test_k_limits_the_results(collection: Collection):
    assert len(collection.search("server", k=1)) == 1
    assert len(collection.search("server", k=10 * CANDIDATES)) == len(FILES)


@pytest.mark.parametrize(
    "query", ['"', "a AND (b", "port:8000 NEAR", "-server", "*", "'; DROP TABLE chunk"]
)
def test_any_text_is_a_query(collection: Collection, query: str):
    collection.search(query)


@pytest.mark.parametrize("query", ["", " \n"])
def test_an_empty_query_is_refused(collection: Collection, query: str):
    with pytest.raises(InvalidRequest, match="query is empty"):
        collection.search(query)


@pytest.mark.parametrize(
    ("query", "file"),
    [
        ("文法", "ja"),
        ("日本語の文法を教えて", "ja"),
        ("व्यंजन", "hi"),
        ("ภาษาไทย", "th"),
        ("CAFE", "fr"),
    ],
)
def test_words_of_other_scripts_are_found(
    tmp_path_factory: pytest.TempPathFactory, query: str, file: str
):
    files = {
        "ja.txt": "日本語の文法はとても面白いです。",
        "hi.txt": "हिन्दी भाषा में स्वर और व्यंजन होते हैं।",
        "th.txt": "ภาษาไทยไม่มีช่องว่าง",
        "fr.txt": "Le café est fermé.",
    }
    with collection_of(tmp_path_factory.mktemp("scripts"), files) as made:
        assert names(made, query, mode="lexical") == [file]
