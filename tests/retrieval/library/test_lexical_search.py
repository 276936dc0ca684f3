"""Finding by words, in any script."""

from pathlib import Path

import pytest

from engine.retrieval.store import lexical_search

_TEXTS = {
    "chinese": "北京烤鸭是一道著名的菜肴，源于中国的首都。",
    "japanese": "私は毎朝コーヒーを飲みます。東京タワーに行きました。",
    "korean": "우리는 도서관에서 책을 읽었습니다.",
    "hindi": "हिन्दी में पुस्तकें पढ़ना अच्छा लगता है।",
    "thai": "ฉันชอบกินข้าวผัดกับไข่ดาว",
    "german": "Der Übergang über den Fluß führt nach München.",
    "english": "The quick brown fox, e-mail: fox@example.org, uses C++ and snake_case names.",
    "turkish": "Iğdır'da kayısı yetişir.",
}


@pytest.fixture
def texts(collection, tmp_path):
    folder = tmp_path / "texts"
    folder.mkdir()
    for name, text in _TEXTS.items():
        (folder / name).write_text(text)
    collection.add([folder])

    def found(query, **options):
        passages = collection.search(query, mode="lexical", **options)
        return [Path(one.file).name for one in passages]

    return found


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("北京烤鸭", "chinese"),
        ("著名的", "chinese"),
        ("烤鸭", "chinese"),  # too short for a trigram
        ("鸭", "chinese"),
        ("東京", "japanese"),
        ("コーヒー", "japanese"),
        ("도서관", "korean"),  # without its particle
        ("पुस्तकें", "hindi"),
        ("पुस्तक", "hindi"),  # the stem
        ("हिन्दी", "hindi"),
        ("ข้าวผัด", "thai"),
        ("munchen", "german"),
        ("ÜBERGANG", "german"),
        ("fox", "english"),
        ("example.org", "english"),
        ("snake_case", "english"),
        ("KAYISI yetisir", "turkish"),
    ],
)
def test_finds(texts, query, name):
    assert texts(query)[:1] == [name]


@pytest.mark.parametrize(
    "query",
    ['"', "''", "fox AND", "(", "NEAR(", "*", "fox*bar:", "^", "-", "a" * 5000, "\0", "\ud800x",
     "{x}: y", "OR OR OR", "; DROP TABLE chunk"],
)  # fmt: skip
def test_no_character_is_an_operator(texts, query):
    texts(query)  # does not raise

    assert texts("fox") == ["english"]


def test_unknown_words_find_nothing(texts):
    assert texts("zebra 象 हाथी") == []


def test_rare_words_decide_and_frequent_ones_are_left_out(collection, tmp_path, monkeypatch):
    monkeypatch.setattr(lexical_search, "MAX_RANKED", 8)
    folder = tmp_path / "many"
    folder.mkdir()
    for n in range(30):
        (folder / f"{n:02}").write_text(
            "frequent words everywhere " + ("rare" if n in (7, 9) else "filler")
        )
    collection.add([folder])

    rare = collection.search("frequent rare everywhere", k=30, mode="lexical")
    assert [Path(one.file).name for one in rare] == ["07", "09"]
    # A query of frequent words alone is still answered.
    assert len(collection.search("frequent everywhere", k=30, mode="lexical")) == 30


def test_short_runs_respect_filters_and_the_collection(library, tmp_path):
    one, two = tmp_path / "one.txt", tmp_path / "two.txt"
    one.write_text("烤鸭 烤鸭")
    two.write_text("烤鸭")
    collection, other = library.create("a"), library.create("b")
    collection.add([one], attributes={"n": 1})
    collection.add([two], attributes={"n": 2})
    other.add([two])

    def found(where=None):
        return [Path(p.file).name for p in collection.search("烤鸭", mode="lexical", where=where)]

    assert found() == ["one.txt", "two.txt"]
    assert found({"type": "eq", "key": "n", "value": 2}) == ["two.txt"]
    assert len(other.search("烤鸭", mode="lexical")) == 1


def test_titles_of_sections_are_found(collection, tmp_path):
    path = tmp_path / "x.md"
    path.write_text("# Zoology\n\n## Marsupials\n\n" + "Their young live in a pouch. " * 60)
    collection.add([path])

    assert all(
        "Zoology" in one.heading_path for one in collection.search("zoology", mode="lexical")
    )
    assert len(collection.search("marsupials", mode="lexical")) > 1


def test_the_ideal_is_the_share_of_the_query_that_can_be_found(collection, tmp_path):
    folder = tmp_path / "words"
    folder.mkdir()
    for n in range(40):
        (folder / f"{n}").write_text(f"filler{n} " + ("okapi " * 50 if n == 7 else ""))
    collection.add([folder])

    def share(query):
        matches = collection.index("lexical").lexical_matches(query, 10)
        return matches.scores[0][1] / matches.ideal if matches.scores else 0.0

    assert 0.7 < share("okapi") <= 1
    assert share("okapi unknownword") == pytest.approx(share("okapi") / 2, rel=0.2)
    assert share("unknownword") == 0
