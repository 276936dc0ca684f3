"""`/v1/vector_stores` with the official client: indexing in the background, search, expiry, deletion."""

import sqlite3
from contextlib import closing

import openai
import pytest

from engine.retrieval.library.collection import Collection
from tests.fakes.gated_embedder import GatedEmbedder
from tests.server.byte_engine import wait_until
from tests.server.files_server import Clock, files_server

HERON = b"# Herons\n\nThe grey heron stands in shallow water and waits for fish.\n"
OWL = b"# Owls\n\nThe barn owl hunts mice at night and hears them in the dark.\n"
GATED = b"zzgate: this text is embedded once the gate is open.\n"
DAY = 86_400


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    with files_server(tmp_path_factory.mktemp("stores")) as running:
        yield running


@pytest.fixture(scope="module")
def birds(served):
    """A vector store of two files with attributes."""
    store = served.api.vector_stores.create(name="birds", metadata={"kind": "test"})
    for name, data, attributes in (
        ("heron.md", HERON, {"year": 2024, "wet": True, "lang": "en"}),
        ("owl.md", OWL, {"year": 2026, "wet": False, "lang": "en"}),
    ):
        file = served.upload(name, data)
        done = served.api.vector_stores.files.create_and_poll(
            file.id, vector_store_id=store.id, attributes=attributes, poll_interval_ms=5
        )
        assert done.status == "completed"
    return store


@pytest.fixture
def gate(served):
    """Files with `zzgate` in them are not indexed before `gate.set()`."""
    served.embedder.gate.clear()
    served.embedder.waiting.clear()
    yield served.embedder.gate
    served.embedder.gate.set()


def files_by_name(served, store):
    listed = served.api.vector_stores.files.list(store.id)
    return {served.api.files.retrieve(one.id).filename: one for one in listed}


def names(found):
    return [one.filename for one in found.data]


def test_a_store_counts_its_files_and_bytes(served, birds):
    store = served.api.vector_stores.retrieve(birds.id)
    assert (store.object, store.name, store.status) == ("vector_store", "birds", "completed")
    assert store.metadata == {"kind": "test"}
    counts = store.file_counts
    assert (counts.completed, counts.in_progress, counts.failed, counts.total) == (2, 0, 0, 2)
    files = files_by_name(served, store)
    assert store.usage_bytes == sum(one.usage_bytes for one in files.values())
    assert files["heron.md"].usage_bytes > len(HERON)
    assert files["heron.md"].attributes == {"year": 2024, "wet": True, "lang": "en"}
    assert files["heron.md"].chunking_strategy.static.max_chunk_size_tokens == 256


def test_a_search_finds_the_passage_its_file_and_its_span(served, birds):
    found = served.api.vector_stores.search(birds.id, query="where does the heron stand")
    assert found.object == "vector_store.search_results.page"
    assert found.search_query == ["where does the heron stand"]
    first = found.data[0]
    assert first.filename == "heron.md"
    assert first.content[0].type == "text"
    assert "grey heron" in first.content[0].text
    assert 0 < first.score <= 1
    assert first.attributes["year"] == 2024
    assert HERON[first.start : first.end].decode() == first.content[0].text
    assert served.api.files.retrieve(first.file_id).filename == "heron.md"
    assert str(served.folder) not in found.model_dump_json()


def test_rows_of_a_table_stand_below_its_header(served):
    rows = "".join(f"heron {at},{at}\n" for at in range(300))
    store = served.store_with({"birds.csv": f"Bird,Sightings\n{rows}".encode()})
    found = served.api.vector_stores.search(store.id, query="heron 299")
    below = [one for one in found.data if one.start > 0]
    assert below
    for one in below:
        header, text = one.content[0].text.split("\n", 1)
        assert header == one.heading_path[-1] == "Bird,Sightings"
        assert len(text.encode()) == one.end - one.start


def test_results_are_in_the_order_of_the_scores_that_are_shown(served, birds):
    queries = ["where does the heron stand", "barn owl hunts mice"]
    store = served.store_with(
        {
            "heron.md": b"The grey heron stands in shallow water.\n",
            "owl.md": b"The barn owl hunts mice at night.\n",
            "both.md": b"Neither heron nor owl: a page about the price of bread, of salt and of candles.\n",
            "salt.md": b"Salt is sold by weight.\n",
        }
    )
    options = {"score_threshold": 0.01, "ranker": "auto"}
    for query in (queries[0], queries, queries[::-1], [*queries, "the price of salt"]):
        for extra in ({}, {"max_num_results": 2}, {"ranking_options": options}):
            found = served.api.vector_stores.search(store.id, query=query, **extra)
            scores = [one.score for one in found.data]
            assert scores == sorted(scores, reverse=True)
            assert len(found.data) > 1
    found = served.api.vector_stores.search(store.id, query=queries, max_num_results=2)
    assert sorted(names(found)) == ["heron.md", "owl.md"]


def test_several_queries_are_searched_for(served, birds):
    found = served.api.vector_stores.search(birds.id, query=["heron fish", "owl mice"])
    assert sorted(names(found)) == ["heron.md", "owl.md"]
    assert found.search_query == ["heron fish", "owl mice"]


def test_the_number_of_results_is_bounded(served, birds):
    found = served.api.vector_stores.search(birds.id, query="the", max_num_results=1)
    assert len(found.data) == 1
    with pytest.raises(openai.BadRequestError) as caught:
        served.api.vector_stores.search(birds.id, query="the", max_num_results=51)
    assert caught.value.param == "max_num_results"


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({"type": "eq", "key": "year", "value": 2024}, ["heron.md"]),
        ({"type": "ne", "key": "year", "value": 2024}, ["owl.md"]),
        ({"type": "gte", "key": "year", "value": 2025}, ["owl.md"]),
        ({"type": "eq", "key": "wet", "value": True}, ["heron.md"]),
        ({"type": "in", "key": "year", "value": [2026, 2027]}, ["owl.md"]),
        (
            {
                "type": "and",
                "filters": [
                    {"type": "eq", "key": "lang", "value": "en"},
                    {"type": "lt", "key": "year", "value": 2025},
                ],
            },
            ["heron.md"],
        ),
        ({"type": "eq", "key": "lang", "value": "de"}, []),
    ],
)
def test_filters_choose_files_by_attributes(served, birds, filters, expected):
    found = served.api.vector_stores.search(birds.id, query="the heron owl", filters=filters)
    assert sorted(set(names(found))) == expected


def test_a_filter_chooses_files_by_id(served, birds):
    file = files_by_name(served, birds)["owl.md"]
    only = {"type": "or", "filters": [{"type": "eq", "key": "file", "value": file.id}]}
    found = served.api.vector_stores.search(birds.id, query="the heron", filters=only)
    assert names(found) == ["owl.md"]
    path = {"type": "eq", "key": "file", "value": str(served.folder)}
    with pytest.raises(openai.NotFoundError):
        served.api.vector_stores.search(birds.id, query="the heron", filters=path)


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"filters": {"type": "like", "key": "a", "value": "b"}}, "filters"),
        ({"filters": {"type": "eq", "key": "a"}}, "filters"),
        ({"filters": {"type": "gt", "key": "file", "value": "file-x"}}, "filters"),
        ({"rewrite_query": True}, "rewrite_query"),
        ({"ranking_options": {"ranker": "default-2024-11-15"}}, "ranking_options.ranker"),
        (
            {"ranking_options": {"hybrid_search": {"embedding_weight": 1, "text_weight": 2}}},
            "ranking_options.hybrid_search",
        ),
        ({"ranking_options": {"score_threshold": 2}}, "ranking_options.score_threshold"),
        ({"query": ""}, "query[0]"),
        ({"query": []}, "query"),
    ],
)
def test_what_a_search_cannot_honour_is_refused_by_name(served, birds, fields, param):
    given = {"query": "heron"} | fields
    answer = served.http.post(f"/v1/vector_stores/{birds.id}/search", json=given)
    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == param


def test_a_filter_that_is_nested_too_deep_is_refused(served, birds):
    deep = {"type": "eq", "key": "a", "value": 1}
    for _ in range(400):
        deep = {"type": "and", "filters": [deep]}
    answer = served.http.post(
        f"/v1/vector_stores/{birds.id}/search", json={"query": "x", "filters": deep}
    )
    assert answer.status_code == 400
    assert "deep" in answer.json()["error"]["message"]


def test_a_threshold_drops_what_is_less_similar(served, birds):
    every = served.api.vector_stores.search(birds.id, query="barn owl hunts mice")
    best, *rest = sorted((one.score for one in every.data), reverse=True)
    assert rest
    options = {"score_threshold": (best + rest[0]) / 2, "ranker": "none"}
    found = served.api.vector_stores.search(
        birds.id, query="barn owl hunts mice", ranking_options=options
    )
    assert names(found) == ["owl.md"]


def test_content_is_the_text_as_it_was_indexed(served, birds):
    file = files_by_name(served, birds)["owl.md"]
    content = served.api.vector_stores.files.content(file.id, vector_store_id=birds.id)
    assert [one.type for one in content] == ["text"]
    assert "".join(one.text for one in content) == OWL.decode()


def test_new_attributes_filter_at_once_and_embed_nothing(served):
    store = served.store_with({"note.md": b"Attributes of a note about lapwings.\n"})
    (file,) = served.api.vector_stores.files.list(store.id)
    calls = len(served.embedder.calls)
    changed = served.api.vector_stores.files.update(
        file.id, vector_store_id=store.id, attributes={"topic": "lapwing", "n": 2.5}
    )
    assert changed.attributes == {"topic": "lapwing", "n": 2.5}
    assert len(served.embedder.calls) == calls
    for value, expected in (("lapwing", ["note.md"]), ("stork", [])):
        only = {"type": "eq", "key": "topic", "value": value}
        found = served.api.vector_stores.search(store.id, query="lapwings", filters=only)
        assert names(found) == expected
    cleared = served.api.vector_stores.files.update(
        file.id, vector_store_id=store.id, attributes=None
    )
    assert cleared.attributes == {}


def test_a_file_in_two_stores_is_found_in_both_and_leaves_one(served):
    file = served.upload("shared.md", b"The shared file about curlews.\n")
    stores = [served.api.vector_stores.create(file_ids=[file.id]) for _ in range(2)]
    for store in stores:
        served.api.vector_stores.files.poll(file.id, vector_store_id=store.id, poll_interval_ms=5)
    gone = served.api.vector_stores.files.delete(file.id, vector_store_id=stores[0].id)
    assert (gone.object, gone.deleted) == ("vector_store.file.deleted", True)
    found = [served.api.vector_stores.search(one.id, query="curlews") for one in stores]
    assert [names(one) for one in found] == [[], ["shared.md"]]
    with pytest.raises(openai.NotFoundError):
        served.api.vector_stores.files.retrieve(file.id, vector_store_id=stores[0].id)
    assert served.api.files.retrieve(file.id).filename == "shared.md"


def test_deleting_a_file_erases_it_from_every_index_and_from_disk(served):
    secret = "The vault of the albatross opens with quixotism."
    file = served.upload("secret.md", secret.encode())
    stores = [served.api.vector_stores.create(file_ids=[file.id]) for _ in range(2)]
    for store in stores:
        served.api.vector_stores.files.poll(file.id, vector_store_id=store.id, poll_interval_ms=5)
        assert names(served.api.vector_stores.search(store.id, query="albatross")) == ["secret.md"]
    assert served.contains(b"quixotism")
    served.api.files.delete(file.id)
    for store in stores:
        assert not served.api.vector_stores.search(store.id, query="albatross").data
        assert served.api.vector_stores.retrieve(store.id).file_counts.total == 0
    assert not served.contains(b"quixotism")
    assert not served.contains(b"albatross")


def test_deleting_a_store_erases_its_index_and_keeps_its_files(served):
    store = served.store_with({"words.md": b"Words of a gyrfalcon.\n"})
    (file,) = served.api.vector_stores.files.list(store.id)
    assert len(served.contains(b"gyrfalcon")) > 1
    gone = served.api.vector_stores.delete(store.id)
    assert (gone.id, gone.object, gone.deleted) == (store.id, "vector_store.deleted", True)
    with pytest.raises(openai.NotFoundError):
        served.api.vector_stores.retrieve(store.id)
    with pytest.raises(openai.NotFoundError):
        served.api.vector_stores.search(store.id, query="gyrfalcon")
    (left,) = served.contains(b"gyrfalcon")  # the uploaded file
    assert left.name.startswith(file.id)
    served.api.files.delete(file.id)
    assert not served.contains(b"gyrfalcon")


def test_indexing_runs_in_the_background(served, gate):
    store = served.api.vector_stores.create()
    file = served.upload("slow.md", GATED)
    added = served.api.vector_stores.files.create(store.id, file_id=file.id)
    assert (added.status, added.usage_bytes, added.last_error) == ("in_progress", 0, None)
    assert served.embedder.waiting.wait(20)
    # While the embedding model works on it, everything else is answered.
    now = served.api.vector_stores.retrieve(store.id)
    assert (now.status, now.file_counts.in_progress) == ("in_progress", 1)
    assert not served.api.vector_stores.search(store.id, query="text").data
    chat = served.api.chat.completions.create(
        model="toy", messages=[{"role": "user", "content": "hi"}], max_tokens=2
    )
    assert chat.choices
    gate.set()
    done = served.api.vector_stores.files.poll(
        file.id, vector_store_id=store.id, poll_interval_ms=5
    )
    assert done.status == "completed"
    assert served.api.vector_stores.retrieve(store.id).status == "completed"
    assert names(served.api.vector_stores.search(store.id, query="gate text")) == ["slow.md"]


def test_a_batch_is_counted_listed_and_cancelled(served, gate):
    store = served.api.vector_stores.create()
    slow = served.upload("slow.md", GATED)
    rest = [served.upload(f"{i}.md", f"Number {i} of godwits.\n".encode()) for i in range(3)]
    batches = served.api.vector_stores.file_batches
    batch = batches.create(store.id, file_ids=[slow.id, *(one.id for one in rest)])
    assert batch.id.startswith("vsfb_")
    assert (batch.object, batch.status) == ("vector_store.files_batch", "in_progress")
    assert batch.file_counts.total == batch.file_counts.in_progress == 4
    assert served.embedder.waiting.wait(20)
    cancelled = batches.cancel(batch.id, vector_store_id=store.id)
    assert (cancelled.status, cancelled.file_counts.cancelled) == ("cancelled", 4)
    gate.set()
    listed = batches.list_files(batch.id, vector_store_id=store.id, filter="cancelled")
    assert {one.id for one in listed} == {slow.id, *(one.id for one in rest)}
    # The file that was being embedded is not left behind in the index.
    other = served.store_with({"after.md": b"After the godwits.\n"})
    assert names(served.api.vector_stores.search(other.id, query="godwits")) == ["after.md"]
    assert not served.api.vector_stores.search(store.id, query="gate godwits").data
    # What was cancelled can be added again.
    again = batches.create_and_poll(store.id, file_ids=[slow.id], poll_interval_ms=5)
    assert (again.status, again.file_counts.completed) == ("completed", 1)
    assert names(served.api.vector_stores.search(store.id, query="gate")) == ["slow.md"]


def test_a_batch_gives_each_file_its_attributes(served):
    store = served.api.vector_stores.create()
    files = [served.upload(f"{name}.md", f"About {name}s.\n".encode()) for name in ("wren", "tern")]
    batch = served.api.vector_stores.file_batches.create(
        store.id,
        files=[{"file_id": one.id, "attributes": {"n": i}} for i, one in enumerate(files)],
    )
    done = served.api.vector_stores.file_batches.poll(
        batch.id, vector_store_id=store.id, poll_interval_ms=5
    )
    assert (done.status, done.file_counts.completed) == ("completed", 2)
    only = {"type": "eq", "key": "n", "value": 1}
    assert names(served.api.vector_stores.search(store.id, query="About", filters=only)) == [
        "tern.md"
    ]


def test_files_are_uploaded_and_indexed_by_one_call_of_the_client(served):
    store = served.api.vector_stores.create()
    batch = served.api.vector_stores.file_batches.upload_and_poll(
        store.id,
        files=[("a.md", b"A text about dunlins."), ("b.md", b"A text about knots.")],
        poll_interval_ms=5,
    )
    assert (batch.status, batch.file_counts.completed) == ("completed", 2)
    assert names(served.api.vector_stores.search(store.id, query="dunlins"))[0] == "a.md"


def test_a_file_without_text_fails_with_its_reason(served):
    store = served.api.vector_stores.create()
    file = served.upload("noise.bin", bytes(range(256)) * 40)
    done = served.api.vector_stores.files.create_and_poll(
        file.id, vector_store_id=store.id, poll_interval_ms=5
    )
    assert done.status == "failed"
    assert done.last_error.code == "unsupported_file"
    assert done.last_error.message
    counts = served.api.vector_stores.retrieve(store.id).file_counts
    assert (counts.failed, counts.completed) == (1, 0)
    failed = served.api.vector_stores.files.list(store.id, filter="failed")
    assert [one.id for one in failed] == [file.id]
    content = served.http.get(f"/v1/vector_stores/{store.id}/files/{file.id}/content")
    assert content.status_code == 404


def test_lists_have_pages_in_both_directions(tmp_path):
    with files_server(tmp_path) as served:
        stores = [served.api.vector_stores.create(name=str(i)).id for i in range(5)]
        newest = served.api.vector_stores.list(limit=2)
        assert [one.id for one in newest.data] == [stores[4], stores[3]]
        assert newest.has_more is True
        assert (newest.first_id, newest.last_id) == (stores[4], stores[3])
        assert [one.id for one in newest] == stores[::-1]
        oldest = served.api.vector_stores.list(order="asc", after=stores[1], limit=2)
        assert [one.id for one in oldest.data] == [stores[2], stores[3]]
        before = served.api.vector_stores.list(order="asc", before=stores[3], limit=2)
        assert [one.id for one in before.data] == [stores[1], stores[2]]
        assert before.has_more is True
        between = served.api.vector_stores.list(order="asc", after=stores[0], before=stores[3])
        assert [one.id for one in between.data] == [stores[1], stores[2]]
        for query in ("limit=0", "limit=101", "order=up", "after=vs_gone"):
            answer = served.http.get(f"/v1/vector_stores?{query}")
            assert answer.status_code == 400
            assert answer.json()["error"]["param"] == query.partition("=")[0]


def test_a_store_is_modified(served):
    after = {"anchor": "last_active_at", "days": 3}
    store = served.api.vector_stores.create(name="old", metadata={"a": "1"}, expires_after=after)
    changed = served.api.vector_stores.update(store.id, name="new", metadata={"b": "2"})
    assert (changed.name, changed.metadata) == ("new", {"b": "2"})
    assert changed.expires_after.days == 3
    cleared = served.api.vector_stores.update(store.id, expires_after=None)
    assert (cleared.expires_after, cleared.expires_at, cleared.name) == (None, None, "new")


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"expires_after": {"anchor": "created_at", "days": 1}}, "expires_after.anchor"),
        ({"expires_after": {"anchor": "last_active_at", "days": 0}}, "expires_after.days"),
        ({"metadata": {str(i): "x" for i in range(17)}}, "metadata"),
        ({"metadata": {"a": "x" * 513}}, "metadata.a"),
        ({"metadata": {"a": 1}}, "metadata.a"),
        ({"name": 1}, "name"),
        ({"chunking_strategy": {"type": "auto"}}, "chunking_strategy"),
        (
            {
                "file_ids": ["file-x"],
                "chunking_strategy": {
                    "type": "static",
                    "static": {"max_chunk_size_tokens": 800, "chunk_overlap_tokens": 400},
                },
            },
            "chunking_strategy.static",
        ),
    ],
)
def test_what_a_store_cannot_have_is_refused_by_name(served, fields, param):
    answer = served.http.post("/v1/vector_stores", json=fields)
    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == param


def test_the_sizes_that_chunks_have_may_be_named(served):
    sizes = {"max_chunk_size_tokens": 256, "chunk_overlap_tokens": 32}
    file = served.upload("a.md", b"Chunks of a text.\n")
    store = served.api.vector_stores.create(
        file_ids=[file.id], chunking_strategy={"type": "static", "static": sizes}
    )
    done = served.api.vector_stores.files.poll(
        file.id, vector_store_id=store.id, poll_interval_ms=5
    )
    assert done.chunking_strategy.static.model_dump() == sizes


@pytest.mark.parametrize(
    ("attributes", "status"),
    [
        ({"a": float(2**60), "b": -1, "c": "", "d": False}, 200),
        ({"a": None}, 400),
        ({"a": [1]}, 400),
        ({"a": "x" * 513}, 400),
        ({"x" * 65: 1}, 400),
        ({"file": "x"}, 400),
        ({str(i): i for i in range(17)}, 400),
    ],
)
def test_attributes_are_short_texts_numbers_and_booleans(served, birds, attributes, status):
    file = served.upload("a.md", b"x\n")
    answer = served.http.post(
        f"/v1/vector_stores/{birds.id}/files", json={"file_id": file.id, "attributes": attributes}
    )
    assert answer.status_code == status
    if status == 200:
        assert answer.json()["attributes"] == attributes
    served.api.files.delete(file.id)


def test_unknown_ids_are_404(served, birds):
    file = served.upload("a.md", b"x\n")
    calls = [
        lambda: served.api.vector_stores.retrieve("vs_gone"),
        lambda: served.api.vector_stores.search("vs_gone", query="x"),
        lambda: served.api.vector_stores.delete("vs_gone"),
        lambda: served.api.vector_stores.create(file_ids=["file-gone"]),
        lambda: served.api.vector_stores.files.create(birds.id, file_id="file-gone"),
        lambda: served.api.vector_stores.files.create("vs_gone", file_id=file.id),
        lambda: served.api.vector_stores.files.retrieve(file.id, vector_store_id=birds.id),
        lambda: served.api.vector_stores.files.delete(file.id, vector_store_id=birds.id),
        lambda: served.api.vector_stores.file_batches.retrieve("vsfb_x", vector_store_id=birds.id),
        lambda: served.api.vector_stores.file_batches.cancel("vsfb_x", vector_store_id=birds.id),
    ]
    for call in calls:
        with pytest.raises(openai.NotFoundError) as caught:
            call()
        assert caught.value.code == "not_found"
    stores = len(list(served.api.vector_stores.list()))
    with pytest.raises(openai.NotFoundError):
        served.api.vector_stores.create(name="half", file_ids=[file.id, "file-gone"])
    assert len(list(served.api.vector_stores.list())) == stores  # nothing is left of it
    served.api.files.delete(file.id)


def test_a_store_expires_after_days_without_use(tmp_path):
    with files_server(tmp_path) as served:
        after = {"anchor": "last_active_at", "days": 2}
        store = served.store_with(
            {"brief.md": b"The brief life of mayflies.\n"}, expires_after=after
        )
        created = served.api.vector_stores.retrieve(store.id)
        assert created.expires_at == created.last_active_at + 2 * DAY
        served.clock.now += DAY
        assert names(served.api.vector_stores.search(store.id, query="mayflies")) == ["brief.md"]
        served.clock.now += 2 * DAY - 1  # the search has put it off
        assert served.api.vector_stores.retrieve(store.id).status == "completed"
        served.wake_after(1)
        expired = served.api.vector_stores.retrieve(store.id)
        assert (expired.status, expired.file_counts.total, expired.usage_bytes) == ("expired", 0, 0)
        with pytest.raises(openai.BadRequestError) as caught:
            served.api.vector_stores.search(store.id, query="mayflies")
        assert caught.value.code == "vector_store_expired"
        wait_until(lambda: len(served.contains(b"mayflies")) == 1)
        (left,) = served.contains(b"mayflies")
        assert left.parent.name == "files"  # the uploaded file does not expire with it
        (file,) = served.api.files.list()
        with pytest.raises(openai.BadRequestError):
            served.api.vector_stores.files.create(store.id, file_id=file.id)
        assert served.api.vector_stores.delete(store.id).deleted


def test_indexing_goes_on_after_a_restart(tmp_path):
    clock, embedder = Clock(), GatedEmbedder()
    embedder.gate.clear()
    with files_server(tmp_path, embedder=embedder, clock=clock) as served:
        store = served.api.vector_stores.create(name="kept")
        ids = [served.upload("slow.md", GATED).id, served.upload("b.md", b"Bitterns.\n").id]
        served.api.vector_stores.file_batches.create(store.id, file_ids=ids)
        assert embedder.waiting.wait(20)
        embedder.gate.set()
    with files_server(tmp_path, clock=clock) as served:
        wait_until(lambda: served.api.vector_stores.retrieve(store.id).status == "completed")
        assert served.api.vector_stores.retrieve(store.id).file_counts.completed == 2
        assert names(served.api.vector_stores.search(store.id, query="bitterns"))[0] == "b.md"


def test_a_deletion_does_not_wait_for_texts_of_another_file_to_be_embedded(tmp_path):
    with files_server(tmp_path) as served:
        store = served.store_with({"old.md": b"Old words.\n"})
        (old,) = served.api.vector_stores.files.list(store.id)
        lines = [f"Line {i} of many words, to be embedded in pieces.\n\n" for i in range(9000)]
        lines[0], lines[-1] = "zzgate\n\n", "zzlast\n"
        big = served.upload("big.md", "".join(lines).encode())
        served.embedder.gate.clear()
        served.embedder.second_gate.clear()
        served.api.vector_stores.files.create(store.id, file_id=big.id)
        assert served.embedder.waiting.wait(20)
        # Nothing of the other file is embedded while the gate is closed.
        served.api.vector_stores.files.delete(old.id, vector_store_id=store.id)
        assert served.api.vector_stores.retrieve(store.id).status == "in_progress"
        served.embedder.gate.set()
        served.embedder.second_gate.set()
        done = served.api.vector_stores.files.poll(
            big.id, vector_store_id=store.id, poll_interval_ms=5
        )
        assert done.status == "completed"
        assert names(served.api.vector_stores.search(store.id, query="Line 4711"))[0] == "big.md"


def test_what_fails_is_tried_again_and_holds_nothing_up(served, monkeypatch):
    store = served.store_with({"a.md": b"A dotterel.\n"})
    other = served.store_with({"b.md": b"A whimbrel.\n"})
    (file,), (other_file,) = (served.api.vector_stores.files.list(one.id) for one in (store, other))
    reconcile = Collection.reconcile

    def failing(self, wanted):
        if self.name == store.id:
            raise OSError(28, "No space left on device")
        reconcile(self, wanted)

    monkeypatch.setattr(Collection, "reconcile", failing)
    with pytest.raises(openai.InternalServerError) as caught:
        served.api.vector_stores.files.delete(file.id, vector_store_id=store.id)
    assert caught.value.status_code == 503
    assert "tried again" in caught.value.message
    # It is invisible at once, and the other work goes on.
    assert not served.api.vector_stores.search(store.id, query="dotterel").data
    assert served.api.vector_stores.files.delete(other_file.id, vector_store_id=other.id).deleted
    after = served.store_with({"c.md": b"A sanderling.\n"})
    assert names(served.api.vector_stores.search(after.id, query="sanderling")) == ["c.md"]
    monkeypatch.undo()
    served.wake_after(31)
    wait_until(lambda: not served.service.open().indexing.is_behind)
    served.api.files.delete(file.id)
    assert not served.contains(b"dotterel")


def test_a_start_finishes_what_was_deleted_from_the_catalogue_only(tmp_path):
    clock = Clock()
    with files_server(tmp_path, clock=clock) as served:
        store = served.store_with({"kept.md": b"A kept dunnock.\n", "gone.md": b"A pipit.\n"})
        dropped = served.store_with({"dropped.md": b"A dropped chough.\n"})
        files = files_by_name(served, store)
    # As if the process had been killed between the two.
    with closing(sqlite3.connect(tmp_path / "catalogue.db", isolation_level=None)) as catalogue:
        catalogue.execute("DELETE FROM store_file WHERE file_id = ?", (files["gone.md"].id,))
        catalogue.execute("DELETE FROM file WHERE id = ?", (files["gone.md"].id,))
        catalogue.execute("DELETE FROM store_file WHERE store_id = ?", (dropped.id,))
        catalogue.execute("DELETE FROM vector_store WHERE id = ?", (dropped.id,))
    with files_server(tmp_path, clock=clock) as served:
        wait_until(lambda: not served.contains(b"pipit") and len(served.contains(b"chough")) == 1)
        assert names(served.api.vector_stores.search(store.id, query="dunnock")) == ["kept.md"]


def test_a_catalogue_of_an_earlier_version_is_read(tmp_path):
    clock = Clock()
    with files_server(tmp_path, clock=clock) as served:
        store = served.store_with({"kept.md": b"A kept dunnock.\n", "gone.md": b"A pipit.\n"})
        expired = served.store_with({"old.md": b"An old merlin.\n"})
        files = files_by_name(served, store)
    as_version_1(tmp_path / "catalogue.db", deleting=files["gone.md"].id, expiring=expired.id)
    with files_server(tmp_path, clock=clock) as served:
        wait_until(lambda: not served.contains(b"pipit") and len(served.contains(b"merlin")) == 1)
        assert names(served.api.vector_stores.search(store.id, query="dunnock")) == ["kept.md"]
        assert served.api.vector_stores.retrieve(expired.id).status == "expired"
        assert served.api.vector_stores.delete(expired.id).deleted
        assert {one.filename for one in served.api.files.list()} == {"kept.md", "old.md"}


def as_version_1(path, *, deleting, expiring):
    """Make a catalogue what an earlier version had left: with marks of what was being deleted."""
    with closing(sqlite3.connect(path, isolation_level=None)) as catalogue:
        catalogue.execute("PRAGMA writable_schema = ON")
        catalogue.execute(
            "UPDATE sqlite_schema SET sql = replace(replace(sql, \"'cancelled'\", \"'cancelled', "
            "'deleting'\"), \"'open', 'expired'\", \"'open', 'expiring', 'expired', 'deleting'\")"
        )
        catalogue.execute("PRAGMA writable_schema = RESET")
        catalogue.execute("ALTER TABLE file ADD COLUMN deleting INTEGER NOT NULL DEFAULT 0")
        catalogue.execute(
            "ALTER TABLE store_file ADD COLUMN stale_attributes INTEGER NOT NULL DEFAULT 0"
        )
        catalogue.execute("UPDATE store_file SET state = 'deleting' WHERE file_id = ?", (deleting,))
        catalogue.execute("UPDATE file SET deleting = 1 WHERE id = ?", (deleting,))
        catalogue.execute("UPDATE vector_store SET state = 'expiring' WHERE id = ?", (expiring,))
        catalogue.execute("PRAGMA user_version = 1")


def test_a_search_that_runs_delays_the_erasure_and_is_said_to(served):
    store = served.store_with({"a.md": b"A lammergeier.\n"})
    (file,) = served.api.vector_stores.files.list(store.id)
    database = next(served.folder.rglob("retrieval.db"))
    reader = sqlite3.connect(database, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM chunk").fetchone()
    with pytest.raises(openai.InternalServerError) as caught:
        served.api.vector_stores.files.delete(file.id, vector_store_id=store.id)
    assert "search that runs" in caught.value.message
    reader.close()
    served.wake_after(31)
    wait_until(lambda: not served.service.open().indexing.is_behind)
    served.api.files.delete(file.id)
    assert not served.contains(b"lammergeier")


def test_a_file_that_breaks_the_indexer_fails_alone(served, monkeypatch):
    def broken(self, *_, **__):
        raise ZeroDivisionError

    monkeypatch.setattr(Collection, "add", broken)
    store = served.api.vector_stores.create()
    file = served.upload("a.md", b"x\n")
    done = served.api.vector_stores.files.create_and_poll(
        file.id, vector_store_id=store.id, poll_interval_ms=5
    )
    assert (done.status, done.last_error.code) == ("failed", "server_error")


def test_without_the_embedding_model_the_error_names_the_command(tmp_path):
    with files_server(tmp_path, embedder=GatedEmbedder(installed=False)) as served:
        file = served.upload("a.md", b"x")
        for call in (
            lambda: served.api.vector_stores.create(),
            lambda: served.api.vector_stores.create(file_ids=[file.id]),
            lambda: served.api.vector_stores.search("vs_any", query="x"),
        ):
            with pytest.raises(openai.InternalServerError) as caught:
                call()
            assert caught.value.status_code == 503
            assert caught.value.code == "embedding_model_missing"
            assert "`pravaha models add minilm`" in caught.value.message
            assert caught.value.response.headers["x-should-retry"] == "false"


def test_keys_protect_files_and_stores(tmp_path):
    with files_server(tmp_path, api_key="sk-right") as served:
        for method, path in (
            ("GET", "/v1/files"),
            ("POST", "/v1/files"),
            ("GET", "/v1/vector_stores"),
            ("DELETE", "/v1/vector_stores/vs_x"),
            ("POST", "/v1/rerank"),
        ):
            assert served.http.request(method, path).status_code == 401
