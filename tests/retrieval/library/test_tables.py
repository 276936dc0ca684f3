"""Tables are found and shown with the header row of each passage."""

from pathlib import Path

import pytest

from tests.retrieval.parsing.workbooks import rows, xlsx

TOWNS = ["Oslo", "Bergen", "Aarhus", "Malmö", "Turku", "Riga", "Vilnius", "Gdansk"]


def _csv(folder: Path, *, changed: int = -1) -> Path:
    path = folder / "sales.csv"
    lines = [
        f"{town},{at},{'changed' if at == changed else 'open'}\n"
        for at, town in enumerate(TOWNS * 40)
    ]
    path.write_text("Town,Turnover,State\n" + "".join(lines))
    return path


def test_passages_of_a_csv_have_its_header_row(collection, tmp_path, embedder):
    path = _csv(tmp_path)
    collection.add([path])

    first, *rest = embedder.texts
    found = collection.search("Turnover of Vilnius", k=50)

    assert rest
    assert {one.split("\n")[0] for one in (first, *rest)} == {"Town,Turnover,State"}
    inside = [one for one in found if one.start]
    assert inside
    for one in inside:
        assert one.header == "Town,Turnover,State"
        assert one.shown_text == f"{one.header}\n{one.text}"
        assert path.read_bytes()[one.start : one.end].decode() == one.text


def test_words_of_the_header_find_every_passage(collection, tmp_path):
    collection.add([_csv(tmp_path)])

    found = collection.search("Turnover", k=50, mode="lexical")

    assert len(found) > 2
    assert sum("Turnover" in one.text for one in found) == 1


def test_passages_of_a_sheet_have_its_name_and_header_row(collection, tmp_path, embedder):
    lines = [("Town", "Turnover"), *((town, str(at)) for at, town in enumerate(TOWNS * 40))]
    path = tmp_path / "sales.xlsx"
    path.write_bytes(xlsx(rows(*lines)))
    collection.add([path])

    assert all(one.startswith("Sheet1\nTown | Turnover\n") for one in embedder.texts)
    assert collection.search("Gdansk", k=1)[0].heading_path[0] == "Sheet1"


def test_another_header_embeds_every_row_anew_and_one_row_only_its_passage(
    collection, tmp_path, embedder
):
    path = _csv(tmp_path)
    collection.add([path])
    total = len(embedder.texts)
    embedder.texts.clear()

    _csv(tmp_path, changed=0)
    collection.refresh()
    assert 0 < len(embedder.texts) < total
    embedder.texts.clear()

    path.write_text(path.read_text().replace("Turnover", "Loss"))
    collection.refresh()
    assert len(embedder.texts) == total


def test_lost_vectors_are_computed_of_the_same_texts(collection, tmp_path, embedder, library):
    collection.add([_csv(tmp_path)])
    texts = sorted(embedder.texts)
    next((tmp_path / "retrieval").glob("*.vectors")).unlink()
    embedder.texts.clear()

    collection = library.open("docs")
    assert collection.restore_vectors() == len(texts)

    assert sorted(embedder.texts) == texts


@pytest.mark.parametrize("mode", ["hybrid", "dense", "lexical"])
def test_json_lines_have_no_header(collection, tmp_path, mode):
    path = tmp_path / "a.jsonl"
    path.write_text("".join(f'{{"town": "{town}"}}\n' for town in TOWNS * 40))
    collection.add([path])
    assert not any(one.in_table for one in collection.search("town Riga", k=50, mode=mode))


def test_each_sheet_and_table_has_its_own_header(collection, tmp_path):
    path = tmp_path / "two.xlsx"
    towns = [("Town", "Turnover"), *((town, str(at)) for at, town in enumerate(TOWNS * 40))]
    birds = [("Bird", "Sightings"), *((f"heron {at}", str(at)) for at in range(300))]
    path.write_bytes(xlsx(rows(*towns, (), *birds), rows(*birds)))
    collection.add([path])

    for one in collection.search("heron Vilnius", k=100):
        if one.in_table and one.text[0] != "T" and one.text[0] != "B":
            names = "Bird | Sightings" if one.text.startswith("heron") else "Town | Turnover"
            assert one.heading_path == (one.heading_path[0], names)
