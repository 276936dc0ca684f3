"""Detectors over prose: exact places, near misses, hostile input."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.detectors.detector import DetectorContext
from agents.detectors.text import DETECTORS
from agents.workspace.workspace import Workspace

BY_NAME = {detector.name: detector for detector in DETECTORS}


def found(name: str, **inputs) -> list[tuple[int, str]]:
    context = DetectorContext(inputs=inputs)
    return [(one.line, one.rule) for one in BY_NAME[name].detect(Workspace.of_texts({}), context)]


SOURCE = (
    "Ada Okafor reported 214 ships in February. The radar does not work at night. "
    "Tomas Reuter trains six operators. The repair cost 48,200 euros."
)


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        ("Ada Okafor reported 214 ships.", []),
        ("The repair cost 48.200 euros.", []),
        ("Tomas Reuter trains 6 operators.", []),
        ("At night the radar does not work.", []),
        ("Ada Okafor reported 241 ships.", ["changed-number"]),
        ("Tomas Keller trains six operators.", ["changed-name"]),
        ("The radar works at night.", ["reversed-claim"]),
        ("The harbour sells fresh bread daily.", ["unsupported-claim"]),
    ],
)
def test_a_text_is_compared_with_its_source(text, rules):
    assert [rule for _, rule in found("text_against_source", output=text, source=SOURCE)] == rules


@pytest.mark.parametrize(
    ("source", "target", "rules"),
    [
        ("Hello {name}!", "Hallo {name}!", []),
        ("It costs 1,234.50 euros.", "Es kostet 1.234,50 Euro.", []),
        ("Three boxes and 2 bags.", "Drei Kisten und zwei Taschen.", []),
        ("Until 31 December 2025.", "Bis 31. Dezember 2025.", []),
        ("100% of %d users", "100 % von %d Nutzern", []),
        ("Hello {name}!", "Hallo {}!", ["placeholder-changed"]),
        ("Run `a --b` now.", "Führe `a --c` aus.", ["code-changed"]),
        ("See https://a.example/x", "Siehe https://b.example/x", ["link-changed"]),
        ("A <b>bold</b> word", "Ein <b>fettes<b> Wort", ["markup-changed"]),
        ("It weighs 14 kg.", "Es wiegt 41 kg.", ["number-changed"]),
        ("One line.", "   ", ["missing-translation"]),
    ],
)
def test_a_translation_keeps_what_it_must(source, target, rules):
    assert [
        rule for _, rule in found("translation_against_source", output=target, source=source)
    ] == rules


def test_json_messages_are_compared_by_member():
    source = json.dumps({"a": "Hi {name}", "b": "{count} items"}, indent=1)
    target = json.dumps({"b": "{} articles", "a": "Salut {name}"}, indent=1)
    assert found("translation_against_source", output=target, source=source) == [
        (2, "placeholder-changed")
    ]


@pytest.mark.parametrize(
    ("line", "rules"),
    [
        ("4.2 m × 3.5 m = 14.7 m²", []),
        ("14.7 / 0.09 = 163.33, so 164 tiles", []),
        ("16 × 21.50 = 344.00 euros", []),
        ("5 km = 5000 m", []),
        ("10 % of 50 = 5", []),
        ("x * 5 = 8 and 2x + 3 = 7", []),
        ("f(2 + 1) = 4 and a[1+1] = 7", []),
        ("On 2024-06-05 = 3 was said; the years 2010-2020 = a decade", []),
        ("y - 2 * 3 = 6", []),
        ("2 apples + 3 apples = 6 apples", ["wrong-arithmetic"]),
        ("164 × 1.1 = 184.4", ["wrong-arithmetic"]),
        ("The price is 21.50 / 12 is 2.79 euros", ["wrong-arithmetic"]),
        ("0.3 m × 0.3 m = 0.9 m²", ["wrong-arithmetic"]),
        ("16 × 9 kg = 144 m", ["unit-mismatch"]),
    ],
)
def test_equations_are_recomputed(line, rules):
    assert [rule for _, rule in found("arithmetic_in_steps", output=line + "\n")] == rules


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        ("The scanner reads 40 pages a minute.", []),
        ("Use `the the` here.", []),
        ("- [ ] Add TODO support to the parser", []),
        ("Run the tests. Then run the tests again.", []),
        ("The kit has 3 lamps. The box has 4 lamps.", []),
        ("TODO", ["placeholder-text"]),
        ("Lorem ipsum dolor.", ["placeholder-text"]),
        ("It is the the best one.", ["repetition"]),
        ("Various things were improved quite a lot.", ["vague-claim"]),
        ("Our revolutionary engine is here.", ["unsupported-superlative"]),
        ("Studies show that tea helps.", ["unattributed-claim"]),
        ("The kit has 3 lamps. We sell it. The kit has 4 lamps.", ["contradictory-numbers"]),
        ("The dog " + "that the cat " * 13 + "saw ran.", ["long-sentence"]),
    ],
)
def test_weak_prose_is_found(text, rules):
    assert [rule for _, rule in found("draft_quality", output=text + "\n\nMore text.\n")] == rules


def test_extracted_values_occur_in_the_source():
    source = "Order 12-77 of Anna Falk: 3 lamps for 1,200 euros, due 5 June 2024."
    good = {
        "who": "anna falk",
        "n": 3,
        "sum": 1200.0,
        "due": "2024-06-05",
        "currency": "EUR",
        "ok": True,
    }
    assert found("values_against_source", output=good, source=source) == []
    bad = {"who": "Anna Falkner", "n": 4, "due": "2024-06-15"}
    assert found("values_against_source", output=bad, source=source) == [
        (2, "not-in-source"),
        (3, "wrong-number"),
        (4, "wrong-date"),
    ]
    labelled = {"kind": "invoice"}
    schema = {"properties": {"kind": {"enum": ["invoice", "offer"]}}}
    assert found("values_against_source", output=labelled, source=source, schema=schema) == []


def test_a_valid_plan_has_no_findings():
    plan = {
        "inputs": ["figures"],
        "steps": [
            {"id": "a", "agent": "researcher", "input": "figures", "needs": []},
            {"id": "b", "agent": "critic", "input": "a", "needs": ["a"]},
        ],
    }
    assert found("plan_structure", output=plan) == []


def test_records_are_checked_against_written_requirements():
    requirements = (
        "1. `serial` is a text of exactly 8 letters.\n2. `voltage` is a number from 3.0 to 4.2.\n"
        "3. `ports` is a list of different names.\n4. `by` is given.\n"
    )
    good = {"serial": "ABCDEFGH", "voltage": 3.7, "ports": ["a", "b"], "by": "x"}
    assert found("records_against_schema", output=good, source=requirements) == []
    bad = {"serial": "AB", "voltage": 5, "ports": ["a", "a"]}
    assert sorted(found("records_against_schema", output=bad, source=requirements)) == [
        (1, "missing-field"),
        (2, "schema-violation"),
        (3, "schema-violation"),
        (4, "schema-violation"),
    ]


def test_a_schema_fetches_nothing_and_tries_no_slow_pattern():
    remote = {"$ref": "http://127.0.0.1:1/x.json", "properties": {}}
    assert found("records_against_schema", output={"a": 1}, schema=remote) == [(1, "broken-schema")]
    slow = {"properties": {"a": {"pattern": "^(a+)+$"}}}
    context = DetectorContext(inputs={"output": {"a": "a" * 40 + "!"}, "schema": slow})
    assert list(BY_NAME["records_against_schema"].detect(Workspace.of_texts({}), context)) == []
    assert "nested repetition" in context.notes[0]


@settings(max_examples=60)
@given(st.text(max_size=200), st.text(max_size=200))
def test_no_detector_raises_on_any_text(output, source):
    workspace = Workspace.of_texts({"a.md": output, "b.yaml": source, "c.json": output})
    context = DetectorContext(inputs={"output": output, "source": source, "schema": source})
    for detector in DETECTORS:
        for finding in detector.detect(workspace, context):
            assert finding.line >= 1
            assert finding.rule in {rule.id for rule in detector.rules}


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=12,
)


@settings(max_examples=60)
@given(JSON, JSON)
def test_no_detector_raises_on_any_json(output, source):
    steps = {"steps": [{"id": output, "agent": source, "needs": output, "budget": source}]}
    for value in (output, steps):
        context = DetectorContext(inputs={"output": value, "source": source, "schema": source})
        for detector in DETECTORS:
            list(detector.detect(Workspace.of_texts({}), context))
