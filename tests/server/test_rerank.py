"""`/v1/rerank` and `/rerank`, in the shape that clients of Cohere, Jina and vLLM expect."""

import pytest

from tests.fakes.gated_embedder import GatedEmbedder
from tests.server.files_server import files_server

DOCUMENTS = [
    "The capital of Brazil is Brasilia.",
    "The capital of France is Paris.",
    "Horses and cows are both animals.",
]
QUERY = "What is the capital of France?"


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    with files_server(tmp_path_factory.mktemp("rerank")) as running:
        yield running


def rerank(served, path="/v1/rerank", **fields):
    body = {"model": "minilm", "query": QUERY, "documents": DOCUMENTS} | fields
    return served.http.post(path, json=body)


@pytest.mark.parametrize("path", ["/v1/rerank", "/rerank"])
def test_documents_come_back_best_first_with_their_index(served, path):
    answer = rerank(served, path).json()
    results = answer["results"]
    assert [one["index"] for one in results] == [1, 0, 2]
    scores = [one["relevance_score"] for one in results]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)
    assert [one["document"]["text"] for one in results] == [DOCUMENTS[i] for i in (1, 0, 2)]
    assert answer["model"] == "minilm"
    assert answer["usage"]["total_tokens"] == 24  # every word once


def test_only_the_best_are_returned_without_their_texts(served):
    answer = rerank(served, top_n=2, return_documents=False).json()
    assert [one["index"] for one in answer["results"]] == [1, 0]
    assert all(set(one) == {"index", "relevance_score"} for one in answer["results"])


def test_documents_may_be_objects(served):
    objects = [{"text": text} for text in DOCUMENTS]
    answer, expected = rerank(served, documents=objects).json(), rerank(served).json()
    assert answer["results"] == expected["results"]


def test_the_end_of_a_long_document_counts(served):
    filler = "Nothing about it is said here, only words. " * 100
    answer = rerank(served, documents=[filler, filler + DOCUMENTS[1], DOCUMENTS[2]]).json()
    assert answer["results"][0]["index"] == 1
    assert answer["usage"]["total_tokens"] > 1500


def test_an_empty_document_has_no_relevance(served):
    answer = rerank(served, documents=["  \n", DOCUMENTS[1]]).json()
    assert [(one["index"], one["relevance_score"] > 0) for one in answer["results"]] == [
        (1, True),
        (0, False),
    ]


@pytest.mark.parametrize(
    ("fields", "status", "param"),
    [
        ({"model": "bge-reranker"}, 404, "model"),
        ({"documents": []}, 400, "documents"),
        ({"documents": "one text"}, 400, "documents"),
        ({"documents": [{"title": "x"}]}, 400, "documents[0].text"),
        ({"query": ""}, 400, "query"),
        ({"query": "word " * 300}, 400, "query"),
        ({"top_n": 0}, 400, "top_n"),
        ({"max_tokens_per_doc": 100}, 400, "max_tokens_per_doc"),
        ({"rank_fields": ["text"]}, 400, "rank_fields"),
        ({"documents": ["a " * 600_000]}, 400, "documents"),
    ],
)
def test_what_it_cannot_do_is_refused_by_name(served, fields, status, param):
    answer = rerank(served, **fields)
    assert answer.status_code == status
    assert answer.json()["error"]["param"] == param


def test_without_the_model_the_error_names_the_command(tmp_path):
    with files_server(tmp_path, embedder=GatedEmbedder(installed=False)) as served:
        answer = rerank(served)
        assert answer.status_code == 404
        assert answer.json()["error"]["code"] == "model_not_found"
        assert "`pravaha models add minilm`" in answer.json()["error"]["message"]
