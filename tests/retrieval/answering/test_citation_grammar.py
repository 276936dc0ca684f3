import pytest

from engine.retrieval.answering.citation_grammar import MAX_SOURCES, citation_grammar
from tests.fakes.scripted_client import accepts


@pytest.mark.parametrize(
    "text",
    [
        "Paris is the capital [1].", "One [12] and [3][2].", "", "A list:\n- a [4]\n- [a](link) [^x]\n",
        "Use `argv[0]` and ```\nx[77]\n``` [1]", "日本 [3]。", "x [[5]]", "A [a](link) [1]",
    ],
)  # fmt: skip
def test_allows_text_and_existing_numbers(text: str):
    assert accepts(citation_grammar(12), text)


@pytest.mark.parametrize(
    "text", ["[13]", "[0]", "[007]", "[１]", "[ 1]", "[1, 2]", "x[0]", "[123]", "[1"]
)
def test_allows_no_other_number(text: str):
    assert not accepts(citation_grammar(12), f"As it says {text}")


def test_every_number_up_to_n_and_none_above():
    for n in (1, 9, 10, MAX_SOURCES):
        grammar = citation_grammar(n)
        assert all(accepts(grammar, f"So. [{k}]") for k in range(1, n + 1))
        assert not accepts(grammar, f"So. [{n + 1}]")


@pytest.mark.parametrize("text", ["[1]", "[1] Paris.", " [1] Paris.", "\n[[1]]", "[From 1] Paris"])
def test_an_answer_begins_with_no_citation(text: str):
    assert not accepts(citation_grammar(3), text)


def test_without_passages_nothing_can_be_cited():
    assert accepts(citation_grammar(0), "I do not know [sic].")
    assert not accepts(citation_grammar(0), "Paris [1].")


@pytest.mark.parametrize("n", [-1, MAX_SOURCES + 1])
def test_refuses_other_counts(n: int):
    with pytest.raises(ValueError, match="passages"):
        citation_grammar(n)
