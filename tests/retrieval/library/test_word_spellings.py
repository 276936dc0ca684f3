"""Words are found however the document and the query spell them, at their place in the document."""

import unicodedata
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.retrieval.library.library import Library
from tests.fakes.word_embedder import WordEmbedder

_SPELLINGS = [
    ("The ﬁnal oﬃce plan", "final"),
    ("The ﬁnal oﬃce plan", "ﬁnal OFFICE"),
    ("An infor\u00admation desk", "information"),
    ("An infor-\nmation desk", "information"),
    ("A zero\u200bwidth space", "zerowidth"),
    ("The filter KX\u20114471 is here", "KX-4471"),
    ("The filter KX\u20114471 is here", "KX4471"),
    ("The filter KX-4471 is here", "kx\u20134471"),
    ("The filter KX4471 is here", "KX-4471"),
    ("The filter KX-4471-B is here", "KX4471"),
    ("Full ｗｉｄｔｈ letters", "width"),
    ("Narrow width letters", "ｗｉｄｔｈ"),
    ("The bakery\u2019s ovens", "bakery's"),
    ("A footnote\u00b9 mark", "footnote"),
    ("An area of 10 m\u00b2", "m2"),
    ("Water is H\u2082O", "h2o"),
    ("A cafe\u0301 opens", "café"),
    ("A café opens", "cafe\u0301"),
    ("Die Straße", "STRASSE"),
    ("Die STRASSE", "straße"),
    ("In İzmir und Isparta", "izmir"),
    ("In İzmir und Isparta", "ısparta"),
    ("ﻣﺤﻤﺪ ﻛﺘﺐ", "محمد"),
    ("محمد كتب", "ﻣﺤﻤﺪ"),
    ("كِتَاب", "كتاب"),
    ("朝のｺｰﾋｰを飲む", "コーヒー"),
    ("朝のコーヒーを飲む", "ｺｰﾋｰ"),
    ("ｺｰを飲む", "コー"),  # too short for a trigram
    (unicodedata.normalize("NFD", "우리는 도서관에서"), "도서관"),
    ("Number ٤٤٧١", "4471"),
    ("Send an e-mail", "email"),
    ("Send an email", "e-mail"),
    ("Acme™ bolts", "acme"),
]


@pytest.mark.parametrize(("text", "query"), _SPELLINGS)
def test_a_word_is_found_in_any_spelling(collection, tmp_path: Path, text: str, query: str):
    (tmp_path / "a.txt").write_text(text)
    (tmp_path / "b.txt").write_text("Something else entirely.")
    collection.add([tmp_path / "a.txt", tmp_path / "b.txt"])
    (found,) = collection.search(query, mode="lexical")
    assert Path(found.file).name == "a.txt"
    assert found.text == text
    assert collection.mentions(query)


def test_headings_are_found_in_any_spelling(collection, tmp_path: Path):
    (tmp_path / "a.md").write_text("# The ﬁnal KX\u20114471\n\nIt is here.\n")
    collection.add([tmp_path / "a.md"])
    assert collection.search("final", mode="lexical")
    assert collection.search("kx4471", mode="lexical")


def test_a_document_in_another_spelling_is_deleted_with_its_words(collection, tmp_path: Path):
    (tmp_path / "a.txt").write_text("The ﬁnal KX\u20114471 ｺｰﾋｰ")
    collection.add([tmp_path / "a.txt"])
    assert collection.doctor().damage == []
    collection.remove(tmp_path / "a.txt")
    assert collection.doctor().damage == []
    assert not collection.mentions("final kx4471 コーヒー")


_WORDS = st.sampled_from(
    ["ﬁle", "file", "KX\u20114471", "soft\u00adware", "ＷＩＤＥ", "cafe\u0301", "\u200bx\u200b", "m\u00b2",
     "日本", "ｺｰﾋｰ", "Straße", "don\u2019t", "infor-\nmation", "½", "™", "🙂", "ﻣﺤﻤﺪ",
     "\n\n", "# Head\n\n", "end."]
)  # fmt: skip


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(words=st.lists(_WORDS, min_size=1, max_size=60), query=_WORDS)
def test_offsets_of_hits_are_those_of_the_document(tmp_path_factory, words: list[str], query: str):
    folder = tmp_path_factory.mktemp("offsets")
    path = folder / "a.md"
    path.write_bytes(" ".join(words).encode())
    with Library(folder / "retrieval", WordEmbedder()) as library:
        collection = library.create("docs")
        collection.add([path])
        data = path.read_bytes()
        for mode in ("lexical", "hybrid"):
            for one in collection.search(query, mode=mode, k=5) if query.strip() else ():
                assert data[one.start : one.end].decode() == one.text
        if not query.isspace() and any(letter.isalnum() for letter in query) and query in words:
            assert collection.search(query, mode="lexical", k=1)
