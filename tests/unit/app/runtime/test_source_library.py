"""`SourceLibrary` over real collections and the real embedding model."""

import json
import queue
import threading
from concurrent.futures import wait
from dataclasses import replace

import pytest

from app.runtime.attachment import Attachment
from app.runtime.source_library import (
    NOT_FOUND,
    SourceLibrary,
    build_added,
    build_updated,
    query_of,
)
from app.runtime.stored_passages import (
    StoredCitation,
    load_citations,
    load_found_for,
    load_passages,
)
from engine.api.errors import EngineUnavailable, InvalidRequest, ModelNotFound
from engine.embedding.embedder import Embedder
from engine.models.demo import MINILM
from engine.models.store import ModelStore
from engine.retrieval.answering.evidence import MIN_EVIDENCE
from engine.retrieval.indexing.report import Unreachable
from tests.fakes.fake_client import MODEL
from tests.fakes.fake_sources import Report

HARBOUR = "# Velmora\n\nThe lighthouse of Velmora is 43 metres high. Its lamp burns whale oil.\n"
BRIDGE = "# Tarn\n\nThe bridge of Tarn has nine arches and was finished in 1904.\n"


@pytest.fixture(scope="module")
def embedder():
    path = ModelStore().add(MINILM.name).path
    embedder = Embedder(lambda: path)
    yield embedder
    embedder.close()


@pytest.fixture(scope="module")
def indexer():
    path = ModelStore().add(MINILM.name).path
    indexer = Embedder(lambda: path, precision="int8")
    yield indexer
    indexer.close()


@pytest.fixture
def library(tmp_path, embedder, indexer):
    library = SourceLibrary(
        tmp_path / "retrieval",
        embedder,
        indexer,
        install=lambda report: None,
        min_evidence=MIN_EVIDENCE,
    )
    yield library
    library.close()


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "papers"
    folder.mkdir()
    (folder / "harbour.md").write_text(HARBOUR)
    (folder / "bridge.md").write_text(BRIDGE)
    return folder


def fill(library, name, *paths):
    library.create(name).result()
    return library.add(name, [str(one) for one in paths]).result()


def find(library, question, *names, earlier=(), model=MODEL, room=2000):
    return library.find(names, question, earlier=earlier, model=model, room=room).result()


def test_a_library_without_collections_creates_no_file(library, tmp_path):
    assert library.refresh().result() == ()
    assert not (tmp_path / "retrieval").exists()


def test_a_folder_is_added_and_listed(library, folder):
    (folder / "image.bin").write_bytes(bytes(range(256)) * 8)
    jobs, woken = [], []
    library.on_wake(lambda: (woken.append(1), jobs.append(library.job)))
    report = fill(library, "papers", folder)
    assert report.added == 2
    (view,) = library.refresh().result()
    assert (view.name, view.documents, view.chunks) == ("papers", 2, 2)
    assert any(one is not None and one.doing == "adding" for one in jobs)
    assert library.job is None
    documents = library.documents("papers").result()
    ready = [one.path for one in documents if not one.problem]
    assert ready == [str(folder / "bridge.md"), str(folder / "harbour.md")]
    if view.failed:
        assert documents[0].problem


def test_passages_are_found_marked_as_data_and_stored_with_their_spans(library, folder):
    fill(library, "papers", folder)
    found = find(library, "@papers How high is the lighthouse?", "papers")
    first = load_passages(found.passages)[0]
    assert first.file == str(folder / "harbour.md")
    assert HARBOUR.encode()[first.start : first.end].decode() == first.text
    assert "\n> The lighthouse of Velmora is 43 metres high." in found.context
    assert found.context.endswith("\n\nQuestion: ")
    assert found.context[: first.prompt_end].endswith("whale oil.")
    assert found.count == len(load_passages(found.passages))


def test_the_best_of_several_collections_come_first(library, folder):
    fill(library, "harbours", folder / "harbour.md")
    fill(library, "bridges", folder / "bridge.md")
    found = find(library, "How many arches has the bridge of Tarn?", "harbours", "bridges")
    passages = load_passages(found.passages)
    assert {one.collection for one in passages} == {"harbours", "bridges"}
    assert {one.rank for one in passages} == {1}


def test_without_room_fewer_passages_are_taken(library, folder):
    fill(library, "papers", folder)
    assert find(library, "the lighthouse of Velmora", "papers").count == 2
    assert find(library, "the lighthouse of Velmora", "papers", room=80).count == 1


def test_a_question_that_the_documents_do_not_answer_can_only_be_answered_so(library, folder):
    fill(library, "papers", folder)
    found = find(library, "How do I bake sourdough bread?", "papers")
    assert (found.count, load_passages(found.passages)) == (0, ())
    assert load_found_for(found.passages).declined.startswith("No passage is close enough")
    assert json.loads(library.grammar(found).source) == [NOT_FOUND]


def test_the_grammar_allows_existing_numbers_only(library, folder):
    fill(library, "papers", folder)
    found = find(library, "the lighthouse of Velmora", "papers")
    assert r"1|2" in library.grammar(found).source


def test_a_follow_up_is_searched_for_together_with_what_it_refers_to():
    names = ("docs",)
    assert query_of("@docs, how high is it?", ["@docs Where is the tower?"], names) == (
        "Where is the tower? how high is it?"
    )
    assert (
        query_of("How do I bake sourdough bread?", ["Where?"], names)
        == "How do I bake sourdough bread?"
    )
    assert query_of("What is @property for?", [], names) == "What is @property for?"
    assert query_of("@docs", [], names) == "@docs"


def test_the_model_reads_a_message_without_the_name_of_its_collection(library, folder):
    fill(library, "papers", folder)
    found = find(library, "@papers How high is the lighthouse of Velmora?", "papers")
    assert library.question(found, "@papers How high is it?") == "How high is it?"
    declined = find(library, "@papers How do I bake sourdough bread?", "papers")
    assert library.question(declined, "@papers How do I bake it?") == "How do I bake it?"
    assert library.question(found, "@other how?") == "@other how?"


def test_what_is_declined_is_answered_anyway_or_with_less_evidence(library, folder):
    fill(library, "papers", folder)
    question = "How high is the lighthouse of Zoral?"
    declined = find(library, question, "papers")
    assert load_found_for(declined.passages).declined == "No document has the name Zoral."
    given = {"earlier": (), "model": MODEL, "room": 2000}
    assert library.find(["papers"], question, anyway=True, **given).result().count
    library.min_evidence = -1
    assert find(library, question, "papers").count
    library.min_evidence = 1
    assert not find(library, "How high is the lighthouse of Velmora?", "papers").count


@pytest.mark.parametrize("word", ["Monday", "June", "Wednesdays", "Q3", "Dr"])
def test_words_of_the_calendar_and_titles_are_no_unknown_names(library, folder, word):
    fill(library, "papers", folder)
    assert find(library, f"How high is the lighthouse of Velmora on {word}?", "papers").count


def check(library, found, *pieces, small=False):
    """The check of an answer in pieces, each fed when the one before was checked; what each showed."""
    model = replace(MODEL, parameters=135_000_000 if small else 7_000_000_000)
    running = library.begin_check(found, "How high is the lighthouse?", earlier=(), model=model)
    shown = []
    for piece in pieces:
        running.feed(piece)
        library.refresh().result()  # behind the check, on its thread
        shown.append(running.take())
    running.finish()
    running.wait(60)
    assert running.done
    return running.result, [*shown, running.take()]


def test_citations_are_checked_sentence_by_sentence_while_the_answer_arrives(library, folder):
    fill(library, "papers", folder)
    found = find(library, "How high is the lighthouse of Velmora?", "papers")
    by_file = {one.file.rpartition("/")[2]: one for one in load_passages(found.passages)}
    harbour, bridge = by_file["harbour.md"], by_file["bridge.md"]
    sentence = "The lighthouse of Velmora is 43 metres high."
    checked, shown = check(
        library, found, f"{sentence} [{bridge.n}", f"][{harbour.n}] It is made", " of gold bricks."
    )
    assert shown[0] == sentence  # a citation is shown when it was checked
    assert shown[1] == f" [unsupported][{harbour.n}] It is made"
    assert "".join(shown) == checked.text
    assert checked.text == f"{sentence} [unsupported][{harbour.n}] It is made of gold bricks."
    (kept,) = [one for one in load_citations(checked.citations) if one.supported]
    words = HARBOUR.encode()[kept.start : kept.end].decode()
    assert (kept.n, words) == (harbour.n, sentence)
    assert StoredCitation(bridge.n, False, 0, 0) in load_citations(checked.citations)


def test_small_models_read_passages_and_large_ones_sections(library, folder):
    paragraphs = "\n\n".join(f"The lighthouse of Velmora has a lamp {n}. " * 10 for n in range(3))
    (folder / "long.md").write_text(f"# Lighthouse\n\n{paragraphs}\n")
    fill(library, "papers", folder / "long.md")
    question = "Which lamps has the lighthouse of Velmora?"
    small = replace(MODEL, parameters=135_000_000)
    large = replace(MODEL, parameters=8_000_000_000)
    chunks, sections = (
        load_passages(find(library, question, "papers", model=model).passages)
        for model in (small, large)
    )
    assert max(one.tokens for one in chunks) <= 256
    longest = max(len(one.text) for one in chunks)
    assert max(len(one.text) for one in sections) > longest
    data = (folder / "long.md").read_bytes()
    assert all(data[one.start : one.end].decode() == one.text for one in (*chunks, *sections))


def test_a_name_leads_to_another_document_and_both_support_the_answer(library, folder):
    (folder / "keeper.md").write_text("The lighthouse of Velmora is kept by Lina Berg.\n")
    (folder / "berg.md").write_text("Every morning Lina Berg works in hall C-7.\n")
    for n in range(3):
        (folder / f"more{n}.md").write_text(f"The lighthouse of Velmora is {n} years old.\n")
    fill(library, "papers", folder)
    found = find(
        library, "Where does the person who keeps the lighthouse of Velmora work?", "papers"
    )
    passages = load_passages(found.passages)
    keeper, berg = passages[:2]
    assert [one.file.rpartition("/")[2] for one in (keeper, berg)] == ["keeper.md", "berg.md"]
    assert (keeper.bridge, berg.bridge) == ("", "Lina Berg")
    said = "The person who keeps the lighthouse of Velmora works in hall C-7."
    checked, _ = check(library, found, said)
    assert checked.text == f"{said} [1][2]"
    assert {one.n for one in load_citations(checked.citations) if one.supported} == {1, 2}


def test_a_name_that_no_document_has_is_not_answered(library, folder):
    fill(library, "papers", folder)
    assert find(library, "How high is the lighthouse of Zoral?", "papers").count == 0
    assert find(library, "How high is the lighthouse of Velmora?", "papers").count > 0


def test_of_a_small_model_only_supported_sentences_are_shown_else_the_closest_ones(library, folder):
    fill(library, "papers", folder)
    found = find(library, "How high is the lighthouse of Velmora?", "papers")
    right = "The lighthouse of Velmora is 43 metres high."
    checked, _ = check(library, found, f"It is made of gold bricks. {right}", small=True)
    assert checked.text.startswith(right)
    assert "gold" not in checked.text
    checked, _ = check(library, found, "It is made of gold bricks.", small=True)
    assert "gold" not in checked.text
    assert right in checked.text
    assert any(one.supported for one in load_citations(checked.citations))


def test_a_check_that_the_library_does_not_finish_ends_without_a_result(library, folder):
    fill(library, "papers", folder)
    found = find(library, "How high is the lighthouse of Velmora?", "papers")
    running = library.begin_check(found, "x", earlier=(), model=None)
    library.close()
    running.feed("text")
    assert running.done
    assert running.result is None


def test_a_passage_that_an_earlier_message_has_is_referred_to(library, tmp_path):
    long = "The lighthouse of Velmora is 43 metres high. " + "Its keeper lights the lamp. " * 12
    (tmp_path / "tower.md").write_text(f"{long}\n")
    fill(library, "papers", tmp_path / "tower.md")
    first = find(library, "How high is the lighthouse of Velmora?", "papers")
    second = find(library, "Who lights the lamp?", "papers")
    contexts = library.contexts([first, second])
    assert contexts[0] == first.context
    assert (
        "[1] tower.md, quoted above:\n> The lighthouse of Velmora is 43 metres high." in contexts[1]
    )
    assert len(contexts[1]) < len(second.context) - 200
    assert contexts[1].endswith("\n\nQuestion: ")
    assert library.contexts([second]) == [second.context]


def test_a_citation_opens_its_passage_in_the_document(library, folder):
    fill(library, "papers", folder)
    passages = load_passages(find(library, "How high is the lighthouse?", "papers").passages)
    harbour = next(one for one in passages if one.file.endswith("harbour.md"))
    opened = library.open(harbour, None).result()
    assert "".join(piece.text for piece in opened.pieces) == HARBOUR


def test_a_collection_that_is_gone_is_named_with_what_to_do(library, folder):
    fill(library, "papers", folder)
    library.remove("papers").result()
    with pytest.raises(InvalidRequest, match="/sources detach papers goes on without it"):
        find(library, "anything", "papers")


def test_documents_are_removed_from_a_collection(library, folder):
    fill(library, "papers", folder)
    assert library.remove("papers", str(folder / "bridge.md")).result() == 1
    assert [one.path for one in library.documents("papers").result()] == [
        str(folder / "harbour.md")
    ]


def test_searching_goes_on_while_documents_are_added(library, folder, tmp_path):
    fill(library, "papers", folder)
    many = tmp_path / "many"
    many.mkdir()
    for number in range(12):
        (many / f"{number}.txt").write_text(f"Letter {number} is about tulips.\n" * 4)
    adding = library.add("papers", [str(many)])
    assert find(library, "How high is the lighthouse?", "papers").count
    assert adding.result().added == 12


def test_adding_is_cancelled_and_goes_on_later(library, tmp_path):
    many = tmp_path / "many"
    many.mkdir()
    for number in range(300):
        (many / f"{number}.txt").write_text(f"Letter {number} is about tulips.\n")
    library.create("letters").result()
    library.on_wake(lambda: library.cancel() if library.job is not None else None)
    first = library.add("letters", [str(many)]).result()
    assert first.cancelled
    assert first.added < 300
    library._wakers.clear()
    rest = library.add("letters", [str(many)]).result()
    assert first.added + rest.added == 300


def test_without_the_embedding_model_the_sentence_says_how_to_install_it(tmp_path, folder):
    def missing():
        raise ModelNotFound(
            "The embedding model is not installed: run `pravaha models add minilm`."
        )

    embedder = Embedder(missing)
    fetched = []
    library = SourceLibrary(
        tmp_path / "r",
        embedder,
        embedder,
        install=lambda report: fetched.append(report(1, 2)),
        min_evidence=MIN_EVIDENCE,
    )
    assert not library.has_model
    library.create("papers").result()
    with pytest.raises(ModelNotFound, match="pravaha models add minilm"):
        library.add("papers", [str(folder)]).result()
    library.fetch_model().result()
    assert fetched == [None]
    library.close()
    embedder.close()


def test_attributes_and_exclusions_of_what_is_added_and_conditions_of_what_is_searched(
    library, folder
):
    library.create("papers").result()
    add = library.add("papers", [str(folder)], exclude=["harbour*"], attributes={"year": 1904})
    assert add.result().added == 1
    assert [one.attributes for one in library.documents("papers").result()] == ["year=1904"]
    library.add("papers", [str(folder / "harbour.md")], attributes={"year": 1871}).result()
    both = find(library, "the lighthouse of Velmora", "papers")
    early = find(library, "the lighthouse of Velmora", "papers year<1900")
    assert (both.count, early.count) == (2, 1)
    assert load_passages(early.passages)[0].collection == "papers"
    assert library.count(Attachment.of("papers year<1900")).result() == 1
    assert library.count(Attachment.of(f"papers file={folder / 'bridge.md'}")).result() == 1
    with pytest.raises(InvalidRequest, match="'year' is no condition"):
        library.count(Attachment("papers", ("year",))).result()


def test_a_watched_collection_reads_what_changes_until_that_is_ended(library, folder):
    fill(library, "papers", folder)
    told = queue.Queue()
    library.watch("papers", lambda report, reason: told.put((report, reason))).result()
    assert library.watched == ("papers",)
    with pytest.raises(InvalidRequest, match="papers is watched already"):
        library.watch("papers", print).result()
    (folder / "mill.md").write_text("The mill of Tarn grinds barley.\n")
    report, _ = told.get(timeout=60)
    assert report.added == 1
    assert find(library, "What does the mill of Tarn grind?", "papers").count
    assert library.unwatch("papers")
    assert not library.unwatch("papers")
    assert told.get(timeout=60) == (None, "")
    assert library.watched == ()


def test_what_cannot_be_watched_is_a_sentence_and_a_collection_that_goes_ends_it(library, folder):
    library.create("papers").result()
    with pytest.raises(InvalidRequest, match="papers is empty"):
        library.watch("papers", print).result()
    library.add("papers", [str(folder)]).result()
    told = queue.Queue()
    library.watch("papers", lambda report, reason: told.put(report)).result()
    library.remove("papers").result()
    assert told.get(timeout=60) is None
    assert library.watched == ()


def test_closing_ends_watching(library, folder):
    fill(library, "papers", folder)
    told = queue.Queue()
    library.watch("papers", lambda report, reason: told.put((report, reason))).result()
    library.close()
    assert told.get_nowait() == (None, "")
    assert all("pravaha-watch" not in one.name for one in threading.enumerate())


def test_an_update_reads_what_has_changed(library, folder):
    fill(library, "papers", folder)
    (folder / "bridge.md").unlink()
    (folder / "harbour.md").write_text("The harbour is closed.\n")
    report = library.update("papers").result()
    assert build_updated("papers", report) == "papers: 1 changed, 1 gone."
    assert build_updated("papers", library.update("papers").result()) == "papers is up to date."


def test_an_update_says_which_folder_cannot_be_reached():
    report = Report(unreachable=[Unreachable("/mnt/stick", 7)])
    assert build_updated("docs", report) == (
        "docs is up to date. /mnt/stick cannot be reached: its 7 documents are kept."
    )


def test_after_closing_every_call_fails_with_a_sentence(library):
    library.close()
    refused = library.refresh()
    wait([refused])
    assert isinstance(refused.exception(), EngineUnavailable)


@pytest.mark.parametrize(
    ("report", "sentence"),
    [
        (Report(added=1), "1 document added to docs."),
        (Report(added=2, updated=1, unchanged=4), "3 documents added to docs, 4 unchanged."),
        (Report(failed=["x"]), "0 documents added to docs, 1 cannot be read (/sources shows why)."),
        (
            Report(added=5, cancelled=True),
            "5 documents added to docs. Stopped: the same command goes on from there.",
        ),
    ],
)
def test_what_adding_did_is_one_sentence(report, sentence):
    assert build_added("docs", report) == sentence
