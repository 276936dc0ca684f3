"""Adding, refreshing, removing and finding documents through `Library` and `Collection`."""

import os
import threading
from itertools import pairwise
from pathlib import Path

import pytest

from engine.api.errors import InvalidRequest, ModelError
from engine.retrieval.api.errors import UnknownCollection, UnknownDocument
from engine.retrieval.indexing import batches
from engine.retrieval.library.library import Library
from engine.retrieval.parsing.parser_pool import ParserPool
from tests.fakes.word_embedder import WordEmbedder


def files(collection):
    return [Path(one.path).name for one in collection.documents() if one.status == "ready"]


@pytest.mark.parametrize("mode", ["hybrid", "dense", "lexical"])
def test_finds_the_passage_whose_span_is_its_text(collection, folder, mode):
    collection.add([folder])

    best = collection.search("heron fish", k=1, mode=mode)[0]

    data = Path(best.file).read_bytes()
    assert data[best.start : best.end].decode() == best.text
    assert "patiently" in best.text
    assert best.heading_path[0] == "Animals"
    assert best.rank == 1


def test_every_chunk_is_a_span_of_its_file(collection, folder):
    collection.add([folder])

    for one in collection.search("the quokka heron chef knives und", k=100):
        assert Path(one.file).read_bytes()[one.start : one.end].decode() == one.text


def test_the_next_add_reads_only_what_has_changed(collection, folder, embedder):
    first = collection.add([folder])
    (folder / "köche.txt").write_text("A baker bakes bread.\n")
    embedder.texts.clear()

    second = collection.add([folder])

    assert (first.added, first.updated) == (2, 0)
    assert (second.added, second.updated, second.unchanged) == (0, 1, 1)
    assert embedder.texts == ["A baker bakes bread."]
    assert not collection.search("chef", mode="lexical")
    assert collection.search("baker", mode="lexical")


def test_a_file_whose_time_alone_has_changed_is_unchanged(collection, folder):
    collection.add([folder])
    os.utime(folder / "animals.md", ns=(1, 1))

    assert collection.refresh().unchanged == 2


def test_a_file_with_the_same_time_and_size_but_other_bytes_is_read(collection, folder):
    path = folder / "köche.txt"
    collection.add([folder])
    before = path.stat()
    path.write_bytes(path.read_bytes().replace(b"chef", b"cook"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))

    assert collection.refresh().updated == 1
    assert collection.search("cook", mode="lexical")


def test_chunks_that_a_change_leaves_alone_are_not_embedded_again(collection, tmp_path, embedder):
    path = tmp_path / "long.md"
    sections = [f"# Section {n}\n\n" + f"word{n} " * 250 + "\n\n" for n in range(4)]
    path.write_text("".join(sections))
    collection.add([path])
    before = {one.text for one in collection.search("section", k=100, mode="dense")}
    embedder.texts.clear()

    path.write_text("".join([*sections, "# Section new\n\nA narwhal.\n"]))
    collection.refresh()

    assert embedder.texts
    assert not before & set(embedder.texts)
    assert collection.search("narwhal", k=1)[0].text.endswith("A narwhal.")


def test_a_moved_file_is_found_under_its_new_name_without_embedding(collection, folder, embedder):
    collection.add([folder])
    (folder / "animals.md").rename(folder / "beasts.md")
    embedder.texts.clear()

    report = collection.refresh()

    assert (report.added, report.removed, report.embedded) == (1, 1, 0)
    assert files(collection) == ["beasts.md", "köche.txt"]
    assert not embedder.texts
    best = collection.search("quokka", k=1, mode="dense")[0]
    assert (Path(best.file).name, best.heading_path[0]) == ("beasts.md", "Animals")


def test_refresh_finds_new_files_and_forgets_vanished_ones(collection, folder):
    collection.add([folder])
    (folder / "animals.md").unlink()
    (folder / "new.txt").write_text("An axolotl regrows its legs.\n")

    report = collection.refresh()

    assert (report.added, report.removed, report.unchanged) == (1, 1, 1)
    assert not collection.search("quokka", mode="lexical")
    assert collection.search("axolotl", mode="lexical")


def test_an_unreadable_file_is_listed_with_its_reason_and_stops_nothing(collection, folder):
    (folder / "broken.txt").write_bytes(b"\x00\x01\x02" * 50)

    report = collection.add([folder])

    assert report.added == 2
    assert [Path(one.path).name for one in report.failed] == ["broken.txt"]
    assert report.failed[0].reason.endswith(".")
    failed = [one for one in collection.documents() if one.status == "failed"]
    assert [one.reason for one in failed] == [report.failed[0].reason]


def test_a_file_that_became_unreadable_is_found_no_more(collection, folder):
    collection.add([folder])
    (folder / "animals.md").write_bytes(b"\x00\x01\x02" * 50)

    report = collection.refresh()

    assert len(report.failed) == 1
    assert not collection.search("quokka", mode="lexical")
    assert files(collection) == ["köche.txt"]


def test_a_failed_file_is_tried_again_by_add_only(library, tmp_path):
    class Refusing:
        calls = 0
        longest = 1 << 20

        def parse(self, path):
            from engine.retrieval.api.errors import Unreadable

            Refusing.calls += 1
            raise Unreadable("It is of no use.")

        def close(self):
            pass

    path = tmp_path / "one.txt"
    path.write_text("text")
    library._open_parser = Refusing
    collection = library.create("strict")
    collection.add([path])
    report = collection.refresh()
    assert Refusing.calls == 1
    assert report.failed[0].reason == "It is of no use."

    collection.add([path])
    assert Refusing.calls == 2


def test_a_removed_document_does_not_come_back_by_refresh(collection, folder):
    collection.add([folder])

    assert collection.remove(folder / "animals.md") == 1
    assert collection.refresh().added == 0
    assert files(collection) == ["köche.txt"]

    collection.add([folder])
    assert files(collection) == ["animals.md", "köche.txt"]


def test_removing_a_folder_forgets_that_it_was_added(collection, folder):
    collection.add([folder])

    assert collection.remove(folder) == 2
    assert collection.sources() == []
    with pytest.raises(UnknownDocument, match="has no document"):
        collection.remove(folder)


def test_attributes_filter_in_every_mode(collection, folder):
    collection.add([folder / "animals.md"], attributes={"year": 2020, "draft": False})
    collection.add([folder / "köche.txt"], attributes={"year": 2024})

    for mode in ("hybrid", "dense", "lexical"):
        found = collection.search(
            "the quokka chef", mode=mode, where={"type": "lt", "key": "year", "value": 2022}
        )
        assert {Path(one.file).name for one in found} == {"animals.md"}
        assert found[0].attributes == {"year": 2020.0, "draft": False}


def test_new_attributes_apply_without_reading_the_file_again(collection, folder, embedder):
    collection.add([folder], attributes={"version": 1})
    embedder.texts.clear()

    report = collection.add([folder], attributes={"version": 2})

    assert (report.unchanged, embedder.texts) == (2, [])
    assert {one.attributes["version"] for one in collection.documents()} == {2}


def test_reconcile_deletes_what_is_not_wanted_and_sets_attributes(collection, folder, embedder):
    for path in sorted(folder.iterdir()):
        collection.add([path], attributes={"flag": 1})
    kept, gone = (one.path for one in collection.documents())
    embedder.texts.clear()

    collection.reconcile({kept: {"flag": True}, "/nowhere/else.md": {}})

    (left,) = collection.documents()
    assert (left.path, left.attributes) == (kept, {"flag": True})
    assert left.attributes["flag"] is True
    assert [one.pattern for one in collection.sources()] == [kept]
    assert not embedder.texts
    assert gone not in {one.file for one in collection.search("chef heron", k=9, mode="lexical")}


def test_a_section_is_the_text_around_a_passage(collection, tmp_path):
    path = tmp_path / "long.md"
    body = " ".join(f"Sentence {n} tells of topic{n}." for n in range(200))
    path.write_text(f"# One\n\nshort\n\n# Two\n\n{body}\n")
    collection.add([path])
    passage = collection.search("topic150", k=1, mode="lexical")[0]

    section = collection.section(passage)

    data = path.read_bytes()
    assert section == data[passage.section_start : passage.section_end].decode()
    assert passage.text in section

    path.unlink()  # it is still what was indexed
    joined = collection.section(passage)
    assert joined.split() == section.split()


def test_a_passage_belongs_to_its_collection(library, collection, folder):
    collection.add([folder])
    other = library.create("other")
    chunk = collection.search("quokka", k=1)[0].chunk_id

    assert collection.passage(chunk).text == collection.search("quokka", k=1)[0].text
    assert other.passage(chunk) is None
    assert collection.passage(10**9) is None


def test_text_without_a_file_is_kept_in_one_that_opens(collection):
    collection.add_text("Ein Äffchen.".encode("latin-1"), "note.txt")
    collection.add_text(b"A second version.", "note.txt")

    best = collection.search("version", k=1, mode="lexical")[0]
    assert Path(best.file).read_bytes() == b"A second version."
    assert len(collection.documents()) == 1

    collection.remove(best.file)
    assert not Path(best.file).exists()


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "../x", "a\0b"])
def test_text_without_a_file_needs_a_plain_name(collection, name):
    with pytest.raises(InvalidRequest, match="not the name of a file"):
        collection.add_text(b"x", name)


def test_collections_do_not_see_each_other(library, folder):
    one, two = library.create("one"), library.create("two")
    one.add([folder / "animals.md"])
    two.add([folder / "köche.txt"])

    assert not two.search("quokka", mode="lexical")
    assert {Path(p.file).name for p in two.search("quokka", mode="dense")} == {"köche.txt"}
    assert [record.name for record in library.collections()] == ["one", "two"]

    library.remove("one")
    assert two.search("chef", mode="lexical")
    with pytest.raises(UnknownCollection, match="no collection one"):
        library.open("one")
    with pytest.raises(UnknownCollection):
        one.search("quokka")


def test_a_collection_is_the_same_after_a_restart(tmp_path, folder):
    with Library(tmp_path / "r", WordEmbedder()) as library:
        collection = library.create("docs")
        collection.add([folder])
        before = collection.search("the heron of the island", k=10)
    with Library(tmp_path / "r", WordEmbedder()) as library:
        assert library.open("docs").search("the heron of the island", k=10) == before


@pytest.mark.parametrize("name", ["", "a b", "-x", "ä", "x" * 65, "a/b", "a.b"])
def test_a_name_must_be_plain(library, name):
    with pytest.raises(InvalidRequest, match="cannot be named"):
        library.create(name)


def test_a_name_is_taken_once(library, collection):
    with pytest.raises(InvalidRequest, match="There is a collection docs already"):
        library.create("docs")


def test_nothing_is_created_by_looking(tmp_path):
    with Library(tmp_path / "none", WordEmbedder()) as library:
        assert library.collections() == []
        with pytest.raises(UnknownCollection):
            library.open("docs")
    assert not (tmp_path / "none").exists()


def test_what_does_not_exist_is_refused_before_anything_is_stored(collection, folder, tmp_path):
    with pytest.raises(InvalidRequest, match=r"no file .*missing"):
        collection.add([folder, tmp_path / "missing"])
    with pytest.raises(InvalidRequest, match="No file fits"):
        collection.add([tmp_path / "*.nothing"])
    with pytest.raises(InvalidRequest, match="cannot be named"):
        collection.add([folder], attributes={"file": "x"})
    with pytest.raises(InvalidRequest, match="finite number"):
        collection.add([folder], attributes={"x": float("nan")})
    assert collection.documents() == []


def test_another_embedding_model_is_refused(tmp_path, folder):
    with Library(tmp_path / "r", WordEmbedder("old")) as library:
        library.create("docs").add([folder])
    with Library(tmp_path / "r", WordEmbedder("new")) as library:
        collection = library.open("docs")
        with pytest.raises(ModelError, match="embedding model old, not of new"):
            collection.add([folder])
        with pytest.raises(ModelError, match="embedding model old"):
            collection.search("quokka")
        assert collection.search("quokka", mode="lexical")


def test_a_cancelled_run_keeps_what_is_stored_and_the_next_goes_on(
    collection, tmp_path, embedder, monkeypatch
):
    monkeypatch.setattr(batches, "BATCH_CHUNKS", 4)
    folder = tmp_path / "many"
    folder.mkdir()
    for n in range(40):
        (folder / f"{n:02}.txt").write_text(f"number{n} of forty")
    stop = threading.Event()
    seen = []

    def progress(event):
        seen.append(event)
        if event.files_done >= 12:
            stop.set()

    report = collection.add([folder], progress=progress, cancelled=stop.is_set)

    assert report.cancelled
    done = len(files(collection))
    assert 12 <= done < 40
    embedder.texts.clear()

    report = collection.add([folder])
    assert (report.added, report.unchanged, report.cancelled) == (40 - done, done, False)
    assert len(embedder.texts) == 40 - done
    assert all(a.files_done <= b.files_done for a, b in pairwise(seen))
    assert seen[-1].files == 40


def test_a_long_document_goes_on_with_its_stored_chunks(
    collection, tmp_path, embedder, monkeypatch
):
    monkeypatch.setattr(batches, "BATCH_CHUNKS", 4)
    path = tmp_path / "long.md"
    path.write_text("\n\n".join(f"# Part {n}\n\n" + f"word{n} " * 250 for n in range(30)))
    stop = threading.Event()

    def progress(event):
        if event.chunks >= 12:
            stop.set()

    first = collection.add([path], progress=progress, cancelled=stop.is_set)
    assert first.cancelled
    assert collection.documents() == []  # a part of it is not found
    assert collection.search("part", k=5) == []
    embedder.texts.clear()

    second = collection.add([path])

    assert second.embedded == second.chunks - first.chunks == len(embedder.texts)
    assert len(collection.search("part", k=1000, mode="dense")) == second.chunks


def test_the_text_of_a_document_is_that_of_its_file(collection, folder, library):
    (folder / "mark.txt").write_bytes(b"\xef\xbb\xbfwith a mark\n")
    collection.add([folder])

    assert collection.text(folder / "animals.md") == (folder / "animals.md").read_text()
    assert collection.text(folder / "mark.txt") == "with a mark\n"
    with pytest.raises(UnknownDocument, match="has no document"):
        collection.text(folder / "none.md")
    assert library.purge()  # there is nothing to do


def test_a_name_that_is_no_text_is_reported_and_stops_nothing(collection, folder):
    path = os.path.join(os.fsencode(folder), b"bad\xff.txt")
    with open(path, "w") as file:
        file.write("text")

    for report in (collection.add([folder]), collection.refresh()):
        assert [(one.path, one.reason) for one in report.failed] == [
            (f"{folder}/bad\\xff.txt", "Its name is not valid UTF-8.")
        ]
    assert [(one.path, one.status) for one in collection.documents()][1] == (
        f"{folder}/bad\\xff.txt",
        "failed",
    )
    with pytest.raises(InvalidRequest, match="not valid UTF-8"):
        collection.add([os.fsdecode(path)])

    assert collection.remove(os.fsdecode(path)) == 1
    assert collection.refresh().failed == []
    assert len(collection.documents()) == 2


def test_a_deleted_file_whose_name_is_no_text_leaves_the_list(collection, folder):
    path = os.path.join(os.fsencode(folder), b"bad\xff.txt")
    os.close(os.open(path, os.O_CREAT))
    collection.add([folder])
    os.unlink(path)

    assert collection.refresh().removed == 1
    assert len(collection.documents()) == 2


def test_a_cancelled_run_does_not_wait_for_a_slow_parser(library, folder):
    release, entered = threading.Event(), threading.Event()

    class Slow:
        longest = 1 << 20

        def parse(self, path):
            entered.set()
            release.wait()
            return ParserPool().parse(path)

        def close(self):
            pass

    library._open_parser = Slow
    collection = library.create("slow")
    try:
        report = collection.add([folder], cancelled=entered.is_set)
        assert report.cancelled
    finally:
        release.set()


def test_words_of_texts_and_headings_are_mentioned(collection, folder):
    collection.add([folder], attributes={"year": 2026})

    assert collection.mentions("Animals")
    assert collection.mentions("nowhere PATIENTLY")
    assert not collection.mentions("Zoral")
    assert not collection.mentions("patiently", where={"type": "eq", "key": "year", "value": 2025})
