"""`pravaha rag ask` with a scripted model and vectors of words."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

import app.runtime.opening as opening
from app.cli import cli
from app.runtime.opening import OpenClient
from tests.fakes.scripted_client import ScriptedClient
from tests.retrieval.search.toy_library import WordEmbedder, collection_of

TEXT = "# Server\n\nThe server listens on port 8000 by default.\nIt logs to standard error.\n"

KEEPER = "Lina Berg keeps the Lemal turbine in order.\n"
HALL = "Every morning Lina Berg works in hall C-7.\n"


class ClosedEmbedder(WordEmbedder):
    def close(self) -> None:
        pass


@pytest.fixture
def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    data = tmp_path / "data"
    monkeypatch.setenv("PRAVAHA_DATA_DIR", str(data))
    monkeypatch.chdir(tmp_path)
    data.mkdir()
    more = {f"more{n}.md": f"The Lemal turbine is {n} years old.\n" for n in range(3)}
    with collection_of(data, {"a.md": TEXT, "turbine.md": KEEPER, "berg.md": HALL} | more):
        (data / "library").rename(data / "retrieval")

    def run(*arguments: str, script: tuple[str, ...] = (), **options: Any) -> Result:
        client = ScriptedClient(script)

        @contextmanager
        def scripted(*_: object, **__: object) -> Iterator[OpenClient]:
            yield OpenClient(client, bos=client.bos_id, start=lambda: None)

        monkeypatch.setattr(opening, "open_client", scripted)
        monkeypatch.setattr(opening, "embedder", lambda settings: ClosedEmbedder())
        return CliRunner().invoke(cli, ["rag", "ask", *arguments], **options)

    return run


def test_prints_the_answer_and_where_each_citation_is(ask: Callable[..., Result]):
    result = ask(
        "docs",
        "Which port does the server listen on?",
        script=("The server listens on port 8000 [1].",),
    )
    assert result.exit_code == 0
    answer, place, quote = filter(None, result.output.split("\n"))
    assert answer == "The server listens on port 8000 [1]."
    assert place.startswith("[1] data/documents/a.md:3")
    assert quote == "    “The server listens on port 8000 by default.”"


def test_json_has_citations_whose_bytes_are_in_the_file(ask: Callable[..., Result], tmp_path: Path):
    result = ask(
        "docs",
        "Which port does the server listen on?",
        "--json",
        script=("It listens on port 8000 [1].",),
    )
    answer = json.loads(result.stdout)
    assert answer["answer"] == "It listens on port 8000 [1]."
    assert answer["outcome"] == "answered"
    (citation,) = answer["citations"]
    assert citation["n"] == 1
    data = Path(citation["file"]).read_bytes()
    assert data[citation["start"] : citation["end"]].decode() == citation["text"]
    (quote,) = citation["quotes"]
    assert data[quote["start"] : quote["end"]].decode() == quote["text"]
    assert quote["line"] == 3


def test_says_what_is_not_in_the_documents(ask: Callable[..., Result]):
    result = ask("docs", "Who composed the Four Seasons?")
    assert result.exit_code == 0
    assert result.output.startswith("The documents do not answer this.")
    assert "The closest passages:\ndata/documents/" in result.output


def test_counts_sentences_without_support(ask: Callable[..., Result]):
    script = ("The server listens on port 8000. Bread is baked from flour.",)
    result = ask("docs", "Which port does the server listen on?", script=script)
    assert "No passage supports 1 of 2 sentences" in result.output


def test_reads_the_question_from_standard_input(ask: Callable[..., Result]):
    result = ask(
        "docs",
        "-",
        input="Which port does the server listen on?\n",
        script=("The server listens on port 8000.",),
    )
    assert result.output.startswith("The server listens on port 8000. [1]")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("docs", " "), "The question is empty."),
        (("other", "Why?"), "There is no collection other"),
    ],
)
def test_bad_input_gives_one_sentence(
    ask: Callable[..., Result], arguments: tuple[str, ...], message: str
):
    result = ask(*arguments)
    assert result.exit_code == 1
    assert message in result.output
    assert len(result.output.strip().split("\n")) == 1


def test_a_secret_in_the_question_does_not_reach_the_model(ask: Callable[..., Result]):
    result = ask(
        "docs",
        "Which port? 4111 1111 1111 1111",
        "--min-evidence",
        "-1",
        "--guardrails-mode",
        "block",
    )
    assert result.exit_code == 1
    assert "4111" not in result.output


TWO_HOPS = "Where does the person who keeps the Lemal turbine work?"
CHAINED = "The person who keeps the Lemal turbine works in hall C-7."


def test_several_searches_are_shown(ask: Callable[..., Result]):
    result = ask("docs", TWO_HOPS, script=(CHAINED,))
    assert result.output.startswith(f"{CHAINED} [1][2]")
    assert "\n\nSearched again for Lina Berg: Lina Berg " in result.output
    alone = ask("docs", TWO_HOPS, "--rounds", "1", script=(CHAINED,))
    assert "Searched again" not in alone.output


def test_json_has_the_rounds(ask: Callable[..., Result]):
    answer = json.loads(ask("docs", TWO_HOPS, "-k", "2", "--json", script=(CHAINED,)).stdout)
    first, second = answer["rounds"]
    assert (first["query"], first["bridge"]) == (TWO_HOPS, None)
    assert second["bridge"] == "Lina Berg"
    assert len(first["chunks"]) == 2
    assert set(second["chunks"]).isdisjoint(first["chunks"])
    assert [one["n"] for one in answer["citations"]] == [1, 2]


def test_names_the_name_that_no_document_has(ask: Callable[..., Result]):
    result = ask("docs", "Which port does the Zoral server listen on?")
    assert result.output.startswith(
        "The documents do not answer this. No document has the name Zoral."
    )
    assert "--anyway has it answered all the same." in result.output
    answer = json.loads(ask("docs", "Which port does the Zoral server use?", "--json").stdout)
    assert (answer["outcome"], answer["unknown_names"]) == ("not_found", ["Zoral"])
    assert answer["declined"]["rule"] == "names"


def test_what_is_declined_can_be_answered_anyway(ask: Callable[..., Result]):
    question = "Which port does the Zoral server use?"
    script = ("The server listens on port 8000.",)
    answer = json.loads(ask("docs", question, "--anyway", "--json", script=script).stdout)
    assert answer["declined"] is None
    assert answer["outcome"] != "not_found"


def test_k_rounds_and_evidence_have_limits(ask: Callable[..., Result]):
    assert ask("docs", "Why?", "--rounds", "0").exit_code == 2
    assert ask("docs", "Why?", "-k", "0").exit_code == 2
    assert ask("docs", "Why?", "--min-evidence", "2").exit_code != 0
