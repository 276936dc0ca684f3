"""Searching several collections, with one query or several."""

from engine.retrieval.library.search_across import mentions_across, search_across


def filled(library, tmp_path, name, **texts):
    collection = library.create(name)
    for file, text in texts.items():
        path = tmp_path / f"{name}-{file}.md"
        path.write_text(text)
        collection.add([path], attributes={"file_name": file})
    return collection


def test_the_best_of_each_collection_come_first(library, tmp_path):
    birds = filled(library, tmp_path, "birds", a="The heron waits.\n", b="A heron and a pond.\n")
    food = filled(library, tmp_path, "food", c="A chef cooks a heron.\n")

    found = search_across({birds: None, food: None}, ["heron waits"], k=2)

    assert len(found) == 3
    assert {one.collection.name for one in found[:2]} == {"birds", "food"}
    assert found[0].collection is birds
    assert all(0 <= one.score <= 1 for one in found)


def test_what_several_queries_find_comes_first(library, tmp_path):
    birds = filled(
        library, tmp_path, "birds", both="heron pond\n", one="heron chef\n", two="pond knife\n"
    )

    found = search_across({birds: None}, ["heron", "pond"], k=3)

    assert found[0].passage.attributes == {"file_name": "both"}
    assert len({one.passage.chunk_id for one in found}) == len(found)


def test_each_collection_has_its_own_filter(library, tmp_path):
    birds = filled(library, tmp_path, "birds", a="heron\n", b="heron\n")
    food = filled(library, tmp_path, "food", c="heron\n")
    only = {"type": "eq", "key": "file_name", "value": "b"}

    found = search_across({birds: only, food: None}, ["heron"], k=9)

    assert {one.passage.attributes["file_name"] for one in found} == {"b", "c"}
    assert mentions_across({birds: only}, "heron")
    assert not mentions_across({birds: only}, "quokka")


QUERIES = ["heron pond", "knife"]


def test_by_score_the_highest_is_first_whatever_the_number_of_queries(library, tmp_path):
    # `both` is in both results, but far down in each; `one` and `two` are exact.
    birds = filled(
        library,
        tmp_path,
        "birds",
        both=f"heron knife {' '.join(f'word{n}' for n in range(30))}\n",
        one="heron pond\n",
        two="knife\n",
    )
    found = search_across({birds: None}, QUERIES, k=3, order="score")
    names = [one.passage.attributes["file_name"] for one in found]
    assert set(names[:2]) == {"one", "two"}
    assert names[2] == "both"
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)
    turned = search_across({birds: None}, QUERIES[::-1], k=3, order="score")
    assert [one.score for one in turned] == [one.score for one in found]


def test_a_score_is_that_of_the_query_that_fits_best(library, tmp_path):
    birds = filled(library, tmp_path, "birds", one="heron pond\n", two="knife and fork\n")
    several = search_across({birds: None}, QUERIES, k=3, order="score")
    alone = [search_across({birds: None}, [one], k=3) for one in QUERIES]
    for one in several:
        id_ = one.passage.chunk_id
        assert one.score == max(
            x.score for found in alone for x in found if x.passage.chunk_id == id_
        )
