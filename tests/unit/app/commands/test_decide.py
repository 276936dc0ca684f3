"""`pravaha decide`: questions from options and files, answers for people and scripts, exit statuses."""

import json
from contextlib import contextmanager

import pytest
import typer
from typer.testing import CliRunner

from app.cli import cli
from app.commands import standard_input
from app.commands.decide_questions import divided, from_file, from_options
from app.runtime import opening
from engine.api.decisions import DecisionRules, Decisions
from engine.api.errors import InvalidRequest
from engine.clients.http_client import HttpClient
from tests.server.byte_engine import byte_engine
from tests.server.live import live

REFUND = "The writer asks for a refund."


class Deciding:
    """An engine whose options have given weights; the first one where none is known."""

    def __init__(self, mass=0.9, **weights):
        self.mass, self.weights, self.asked = mass, weights, []

    def decide(self, text, questions, *, calibrate, margin, min_label_mass):
        self.asked.append((text, questions, calibrate))
        rules = DecisionRules(calibrate, margin, min_label_mass)
        return Decisions("toy", tuple(self._answer(one, rules) for one in questions), 9, 4, 2)

    def _answer(self, question, rules):
        weights = [self.weights.get(one, 1.0) for one in question.options]
        return rules.read(question, [one / sum(weights) for one in weights], self.mass)


@pytest.fixture
def pravaha(monkeypatch, tmp_path):
    """Runs `pravaha decide` with an engine."""
    monkeypatch.setenv("PRAVAHA_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setattr(opening, "wait_loaded", lambda client: None)
    monkeypatch.setattr("app.commands.log_file.log_to_file", lambda setting: None)

    def run(engine, *arguments, stdin=None):
        @contextmanager
        def opened(settings, progress):
            yield opening.OpenClient(object(), bos=lambda: None, start=lambda: None, engine=engine)

        monkeypatch.setattr(opening, "open_client", opened)
        monkeypatch.setattr(standard_input, "has_piped_input", lambda: stdin is not None)
        monkeypatch.setattr(standard_input, "read_text", lambda: stdin)
        return CliRunner().invoke(cli, ["decide", *arguments])

    return run


def test_answers_are_lines_with_their_probabilities(pravaha):
    engine = Deciding(yes=3.0, delivery=8.0)
    done = pravaha(
        engine, "--text", "Late!", "--predicate", REFUND, "--choice", "About?", "delivery", "price",
        "taste", "--score", "Anger?", "1", "4",
    )  # fmt: skip
    assert done.exit_code == 4, done.output  # the scale is too close
    assert done.output.splitlines() == [
        f"yes 75%  {REFUND}",
        "delivery 80%  About?  (price 10%, taste 10%)",
        "2.50  1 25%  Anger?  not sure",
    ]


@pytest.mark.parametrize(
    ("engine", "options", "status"),
    [
        (Deciding(yes=3.0), (), 0),
        (Deciding(no=3.0), (), 3),
        (Deciding(yes=1.01), (), 4),
        (Deciding(yes=1.01), ("--margin", "0"), 0),
        (Deciding(mass=0.001, yes=3.0), (), 4),
        (Deciding(mass=0.001, yes=3.0), ("--min-label-mass", "0"), 0),
    ],
)
def test_the_exit_status_is_the_answer(pravaha, engine, options, status):
    done = pravaha(engine, "--text", "x", "--predicate", REFUND, *options)
    assert done.exit_code == status, done.output


def test_every_predicate_has_to_be_true(pravaha):
    questions = ("--predicate", "a", "--predicate", "b")
    assert pravaha(Deciding(yes=3.0), "--text", "x", *questions).exit_code == 0
    assert pravaha(Deciding(no=3.0), "--text", "x", *questions).exit_code == 3


def test_a_refused_answer_says_so(pravaha):
    done = pravaha(Deciding(mass=0.001, yes=3.0), "--text", "x", "--predicate", REFUND)
    assert done.output == f"refused (0.1% for all answers)  {REFUND}\n"


def test_several_files_are_answered_by_name_with_one_model(pravaha, tmp_path):
    files = [tmp_path / "a.txt", tmp_path / "b.txt"]
    for file in files:
        file.write_text(f"Text of {file.name}")
    engine = Deciding(yes=3.0)
    done = pravaha(engine, *map(str, files), "--predicate", REFUND)
    assert done.output.splitlines() == [f"{file}: yes 75%  {REFUND}" for file in files]
    assert [text for text, _, _ in engine.asked] == ["Text of a.txt", "Text of b.txt"]


def test_json_is_one_object_for_each_text(pravaha, tmp_path):
    file = tmp_path / "a.txt"
    file.write_text("x")
    arguments = (
        "--choice",
        "About?",
        "a",
        "b",
        "--json",
        "--calibrate",
        "--",
        str(file),
        str(file),
    )
    engine = Deciding(b=3.0)
    done = pravaha(engine, *arguments)
    first, _ = map(json.loads, done.output.splitlines())
    assert (first["file"], first["model"]) == (str(file), "toy")
    assert first["answers"] == [
        {
            "type": "choice", "name": None, "choice": "b", "confidence": pytest.approx(0.675),
            "probabilities": [
                {"value": "a", "probability": 0.25}, {"value": "b", "probability": 0.75},
            ],
            "label_mass": 0.9, "outcome": "decided",
        }
    ]  # fmt: skip
    assert first["usage"] == {"input_tokens": 9, "cached_tokens": 4, "output_tokens": 2}
    assert engine.asked[0][2]


def test_standard_input_is_the_text_where_there_is_no_other(pravaha):
    engine = Deciding(yes=3.0)
    assert pravaha(engine, "--predicate", REFUND, stdin="Piped.").exit_code == 0
    assert pravaha(engine, "-", "--predicate", REFUND, stdin="Piped.").exit_code == 0
    assert [text for text, _, _ in engine.asked] == ["Piped.", "Piped."]


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (("--text", "x"), 2, "ask something"),
        (("--predicate", "a"), 2, "Missing the text"),
        (("--text", "x", "a.txt", "--predicate", "a"), 2, "exclude each other"),
        (("--text", "x", "--choice", "Which?", "a"), 2, "at least two answers"),
        (("--text", "x", "--choice"), 2, "needs a question"),
        (("--text", "x", "--choice", "Which?", "a", "a"), 1, "the same"),
        (("--text", "x", "--score", "How?", "5", "1"), 2, "5 is not below 1"),
        (("--text", "x", "--score", "How?", "3", "3"), 2, "3 is not below 3"),
        (("--text", "x", "--score", "How?", "1", "300"), 1, "at most 255 levels"),
        (("--text", " ", "--predicate", "a"), 1, "empty"),
        (("nowhere.txt", "--predicate", "a"), 1, "nowhere.txt cannot be read"),
        (("--text", "x", "--questions", "nowhere.json"), 1, "cannot be read"),
        (("--text", "x", "--predicate", "a", "--margin", "2"), 2, "margin"),
        (("--text", "x", "--predicate", "a", "--attach", "http://x", "--ctx", "5"), 2, "--attach"),
    ],
)
def test_a_refusal_is_one_sentence(pravaha, arguments, status, words):
    done = pravaha(Deciding(), *arguments)
    assert done.exit_code == status
    assert words in " ".join(done.output.replace("│", " ").split())


def test_questions_end_at_the_next_option():
    rest, asked = divided(
        ["a.txt", "--choice", "Q", "x", "-5", "--json", "--score=S", "1", "5", "--predicate", "P", "b.txt",
         "--", "--choice", "c.txt"]
    )  # fmt: skip
    assert rest == ["a.txt", "--json", "b.txt", "--", "--choice", "c.txt"]
    assert asked == [
        ("--choice", ["Q", "x", "-5"]), ("--score", ["S", "1", "5"]), ("--predicate", ["P"]),
    ]  # fmt: skip
    with pytest.raises(typer.BadParameter):
        divided(["--predicate", "--json"])


def test_a_scale_is_two_numbers_or_names():
    numbers, names = from_options(
        [("--score", ["Q", "-1", "1"]), ("--score", ["Q", "low", "high"])]
    )
    assert (numbers.options, numbers.lowest) == (("-1", "0", "1"), -1)
    assert (names.options, names.lowest) == (("low", "high"), 0)


@pytest.mark.parametrize("wrapped", [True, False])
def test_a_file_has_the_questions_of_the_api(tmp_path, wrapped):
    questions = [
        {"type": "predicate", "name": "refund", "instructions": REFUND},
        {"type": "choice", "instructions": "Which?",
         "choices": [{"value": "a", "description": "one"}, {"value": True}]},
        {"type": "score", "instructions": "How?", "levels": [{"label": "low"}, {"label": "high"}]},
    ]  # fmt: skip
    text = json.dumps({"questions": questions} if wrapped else questions)
    found = from_file(tmp_path / "q.json", lambda file: text)
    assert [one.kind for one in found] == ["predicate", "choice", "score"]
    assert (found[0].name, found[1].shown()) == ("refund", ["a: one", "true"])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "not JSON"),
        ("{}", "questions"),
        ("[]", "questions"),
        ('[{"type": "rank", "instructions": "x"}]', "questions[0].type"),
        ('[{"type": "choice", "instructions": "x"}]', "questions[0].choices"),
        ('[{"type": "predicate", "instructions": "x", "extra": 1}]', "questions[0].extra"),
    ],
)
def test_a_damaged_file_is_refused_in_one_sentence(tmp_path, text, words):
    with pytest.raises(InvalidRequest) as caught:
        from_file(tmp_path / "q.json", lambda file: text)
    assert words in str(caught.value)
    assert "q.json" in str(caught.value)


def test_a_server_answers_as_the_engine_does():
    with byte_engine(context=1024, blocks=512) as engine, live(engine) as server:
        client = HttpClient(server.url)
        try:
            opening.wait_loaded(client)
            asked = from_options(
                [
                    ("--predicate", ["P"]),
                    ("--choice", ["C", "a", "b"]),
                    ("--score", ["S", "1", "5"]),
                ]
            )
            for options in ({}, {"calibrate": True, "margin": 0.9, "min_label_mass": 0.5}):
                here = engine.decide("A text.", asked, **options)
                there = client.decide("A text.", asked, **options)
                assert there.model == here.model
                for one, other in zip(there.answers, here.answers, strict=True):
                    assert one.probabilities == pytest.approx(other.probabilities)
                    assert one.label_mass == pytest.approx(other.label_mass)
                    assert one.outcome == other.outcome
                    assert one.question == other.question
        finally:
            client.close()
