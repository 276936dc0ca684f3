"""A hybrid search looks for the meaning while it looks for the words."""

import threading
from concurrent.futures import Future
from dataclasses import replace

from engine.api.embeddings import Embeddings
from engine.retrieval.search.hybrid import search
from tests.retrieval.answering.passages import embed
from tests.retrieval.search.toy_library import collection_of


class Vector(Future[Embeddings]):
    """The query's vector, for which nobody waits forever."""

    def result(self, timeout=None):
        return super().result(30 if timeout is None else timeout)


class StoreThatDelivers:
    """A store whose search for words completes the query's vector, as the embedder's thread would."""

    def __init__(self, store, vector):
        self._store, self._vector = store, vector

    def lexical(self, *arguments):
        found = self._store.lexical(*arguments)
        self._vector.set_result(Embeddings("words", embed(["heron"]), 1))
        return found

    def __getattr__(self, name):
        return getattr(self._store, name)


def test_the_query_is_being_embedded_while_words_are_looked_for(tmp_path):
    asked = []
    vector = Vector()

    def submit(texts):
        assert not vector.done(), "embedded after the words"
        asked.extend(texts)
        return vector

    with collection_of(tmp_path, {"a.md": "a heron", "b.md": "a stork"}) as collection:
        index = collection.index()
        index = replace(index, store=StoreThatDelivers(index.store, vector), submit=submit)
        found = search(index, "heron", k=1)
    assert asked == ["heron"]
    assert [one.text for one in found] == ["a heron"]


def test_only_the_callers_thread_reads_the_database(tmp_path):
    readers = set()

    class Watched(StoreThatDelivers):
        def __getattr__(self, name):
            readers.add(threading.get_ident())
            return super().__getattr__(name)

    vector = Vector()

    def submit(texts):
        readers.add(
            threading.get_ident()
        )  # a collection's compares the model's name with the stored one
        return vector

    with collection_of(tmp_path, {"a.md": "a heron", "b.md": "a stork"}) as collection:
        index = collection.index()
        watched = replace(index, store=Watched(index.store, vector), submit=submit)
        assert search(watched, "heron", k=1)
    assert readers == {threading.get_ident()}


def test_a_search_by_words_embeds_nothing(tmp_path):
    def submit(texts):
        raise AssertionError("embedded")

    with collection_of(tmp_path, {"a.md": "a heron", "b.md": "a stork"}) as collection:
        for index in (collection.index("lexical"), collection.index()):
            found = search(replace(index, submit=submit), "heron", k=1, mode="lexical")
            assert [one.text for one in found] == ["a heron"]
