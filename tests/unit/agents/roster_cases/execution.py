"""Seeded inputs of the execution agents: `CASES` has one for each, `SCENARIOS` further ones."""

import json

from agents.api.events import RunState
from agents.runs.result import RunResult
from tests.unit.agents.roster_cases.case import Case

TRACEBACK = """Traceback (most recent call last):
  File "/app/main.py", line 4, in <module>
    print(mean([]))
  File "/app/shop/stats.py", line 2, in mean
    return sum(values) / len(values)
ZeroDivisionError: division by zero
"""
PROJECT = {
    "main.py": "from shop.stats import mean\n\n\nprint(mean([]))\n",
    "shop/stats.py": "def mean(values):\n    return sum(values) / len(values)\n",
}
HARBOUR = (
    "The crane on pier 3 was out of service for 11 days. The repair cost 48,200 euros. "
    "Ada Okafor reported 214 ships in February. The weather was mild. "
    "The meeting decided not to extend the lease of the warehouse. Coffee was served at noon."
)
INVOICE = "Invoice 2024-0871 of Brandt Optics GmbH, dated 5 June 2024.\nTotal: 345.00 euros.\n"


def rules(result: RunResult) -> set[str]:
    return {finding.rule for finding in result.findings}


def places(result: RunResult) -> set[tuple[str, int]]:
    return {(finding.rule, finding.line) for finding in result.findings}


def output(result: RunResult):
    assert result.state is RunState.OK, result.error
    assert result.output is not None
    return result.output


def done(result: RunResult):
    one = output(result)
    assert not one.cannot_do
    return one


def plans_the_steps(result):
    plan = done(result)
    assert [step.agent for step in plan.steps][:3] == ["debugger", "test_generator", "summarizer"]
    assert plan.steps[1].needs == ["s1"]
    assert {"syntax_audit", "security_audit", "output_verifier"} <= {s.agent for s in plan.steps}


def finds_the_plans_defects(result):
    assert places(result) == {
        ("plan-cycle", 4),
        ("unknown-agent", 6),
        ("missing-input", 7),
        ("over-budget", 6),
    }


def quotes_the_passage(result):
    answer = done(result)
    first = answer.citations[0]
    assert (first.file, first.line) == ("tides.md", 3)
    assert "3.8 m in 2020" in first.quote
    assert "[1]" in answer.text


def finds_wrong_citations(result):
    assert places(result) == {("wrong-quote", 1), ("missing-citation", 2)}


def renames_in_both_files(result):
    patch = done(result)
    assert "-def mean(values):" in patch.diff
    assert "+def average(values):" in patch.diff
    assert "+print(average([]))" in patch.diff


def refuses_a_free_change(result):
    assert "needs a model" in output(result).cannot_do


def finds_the_division(result):
    diagnosis = done(result)
    assert (diagnosis.file, diagnosis.line) == ("shop/stats.py", 2)
    assert diagnosis.error == "ZeroDivisionError"
    assert "`len(values)` is zero" in diagnosis.cause
    assert any("git bisect" in step for step in diagnosis.next_steps)


def finds_the_nil_map(result):
    diagnosis = done(result)
    assert (diagnosis.language, diagnosis.file, diagnosis.line) == ("go", "main.go", 5)
    assert "nil" in diagnosis.cause


def computes_in_steps(result):
    steps = done(result)
    assert steps.answer == "6"
    assert [step.result for step in steps.steps] == ["8", "6"]


def solves_no_word_problem(result):
    assert "Without a model only expressions" in output(result).cannot_do


def finds_the_wrong_equation(result):
    assert places(result) == {("wrong-arithmetic", 2), ("unit-mismatch", 3)}


def criticises_the_draft(result):
    critique = done(result)
    assert {"repetition", "missing-part", "placeholder-text"} <= rules(result)
    assert [item.text for item in critique.checklist if not item.covered] == ["Known issues"]
    assert critique.statistics.words > 10


def finds_the_vague_claim(result):
    assert rules(result) == {"vague-claim"}


def refines_and_keeps_facts(result):
    text = done(result)
    assert text.text == "The cat can jump 3 m because Anna Falk trained it."
    assert text.changes


def leaves_good_text_alone(result):
    text = done(result)
    assert text.text == "The pump moves 40 litres a minute."
    assert not text.changes


def is_shorter_and_says_nothing_new(result):
    summary = done(result)
    assert 0 < summary.ratio < 0.6
    assert all(part in HARBOUR for part in summary.text.split(". ")[0].split(", "))


def finds_new_facts(result):
    assert {("changed-number", 1), ("unused-fact", 1)} <= places(result)


def lays_out_the_sections(result):
    sections = done(result).sections
    assert [one.title for one in sections] == ["Tides", "Dredging"]
    assert "tidal range" in sections[0].material[0]
    assert sum(one.words for one in sections) == 400


def finds_the_missing_section(result):
    assert rules(result) == {"missing-part"}


def extracts_the_invoice(result):
    data = done(result)
    assert data.values == {"invoice": "2024-0871", "dated": "2024-06-05", "total": 345}
    assert data.missing == ["due"]
    for span in data.spans:
        assert INVOICE[span.start : span.end] == span.quote


def finds_invented_values(result):
    assert places(result) == {("wrong-number", 3), ("not-in-source", 4)}


def chooses_billing(result):
    choice = done(result)
    assert choice.label == "billing"
    assert not choice.abstained
    assert abs(sum(choice.probabilities.values()) - 1) < 0.01


def abstains(result):
    assert done(result).abstained


def routes_to_the_security_review(result):
    route = done(result)
    assert route.pipeline == "secure-code-review"
    assert {"syntax_audit", "security_audit", "output_verifier"} <= set(route.gates)


def routes_to_extraction(result):
    assert done(result).pipeline == "extract-classify"


def finds_what_the_translation_lost(result):
    assert places(result) == {
        ("placeholder-changed", 1),
        ("number-changed", 2),
        ("untranslated", 3),
    }


def says_that_prose_needs_a_model(result):
    assert "needs a model" in output(result).cannot_do


def votes_for_42(result):
    agreement = done(result)
    assert agreement.answer == "42"
    assert agreement.agreement == 0.6667


def reports_the_tie(result):
    assert "tied" in output(result).cannot_do


def merges_both_changes(result):
    merged = done(result)
    assert merged.text == "one\nTWO\nthree\nfour\n"
    assert not merged.conflicts


def lists_the_conflict(result):
    merged = done(result)
    assert merged.value == {"a": 1, "list": [1, 2, 3]}
    assert [conflict.place for conflict in merged.conflicts] == ["$.a"]


def ranks_by_hard_checks(result):
    ranking = done(result)
    assert [one.index for one in ranking.candidates] == [1, 0, 2]
    assert ranking.candidates[2].score == 0


def refuses_one_candidate(result):
    assert "at least two" in output(result).cannot_do


def stores_and_refuses_the_secret(result):
    ops = done(result)
    assert [(one.op, one.scope) for one in ops.operations] == [
        ("store", "user"),
        ("recall", "project"),
    ]
    assert ops.refused == ["What looks like a secret is not stored."]


def asks_nothing(result):
    assert "Nothing" in output(result).cannot_do


def names_the_available_tools(result):
    assert "There are" in output(result).cannot_do or "there are" in output(result).cannot_do


def reads_the_lines(result):
    given = done(result)
    assert given.tool == "read"
    assert "return sum(values) / len(values)" in given.text
    assert "def mean" not in given.text


def finds_what_the_summary_invents(result):
    assert "changed-number" in rules(result)


def fails_the_record(result):
    verdict = done(result)
    assert not verdict.passed
    assert verdict.score < 100
    assert places(result) == {("missing-field", 1), ("schema-violation", 2)}


def passes_the_checklist(result):
    verdict = done(result)
    assert verdict.passed
    assert verdict.score == 100


PLAN = """budget: {tokens: 4000}
inputs: [figures]
steps:
  - {id: a, agent: researcher, input: figures, needs: [b]}
  - {id: b, agent: critic, input: a, needs: [a]}
  - {id: c, agent: novelist, input: a, needs: [a], budget: {tokens: 9000}}
  - {id: d, agent: coder, input: palette, needs: [a]}
"""
TIDES = (
    "# Tides\n\nThe tidal range at Hamburg rose from 2.0 m in 1950 to 3.8 m in 2020. "
    "Dredging is a cause.\n"
)
GO_PANIC = """panic: assignment to entry in nil map

goroutine 1 [running]:
main.count(...)
\t/src/main.go:5
main.main()
\t/src/main.go:9 +0x1d
"""
SCHEMA = {
    "type": "object",
    "required": ["serial", "tested_by"],
    "properties": {"serial": {"type": "string", "pattern": "^[A-Z0-9]{8}$"}},
}
FIELDS = {
    "properties": {
        "invoice": {"type": "string"},
        "dated": {"type": "string", "format": "date"},
        "due": {"type": "string", "format": "date-time", "pattern": "^2025"},
        "total": {"type": "number"},
    },
    "required": ["invoice", "due"],
}

CASES: dict[str, Case] = {
    "planner": Case(
        plans_the_steps,
        task="Fix the crash in stats.py, write tests for it and then summarise the changes.",
        files=PROJECT | {"stats.py": "x = 1\n"},
    ),
    "researcher": Case(
        quotes_the_passage,
        task="How large is the tidal range at Hamburg?",
        files={"tides.md": TIDES, "other.md": "Ships need a pilot.\n"},
    ),
    "coder": Case(renames_in_both_files, task="Rename mean to average", files=PROJECT),
    "debugger": Case(finds_the_division, document=TRACEBACK, files=PROJECT),
    "reasoning": Case(
        computes_in_steps,
        task="Calculate (3 + 5) - 2.",
    ),
    "critic": Case(
        criticises_the_draft,
        inputs={"output": "draft.md", "checklist": "- Version\n- Known issues\n"},
        files={
            "draft.md": "# Version 3.4\n\nThe scanner is fast now. The scanner is fast now.\n"
            "\n## Upgrade\n\nTODO\n"
        },
    ),
    "refiner": Case(
        refines_and_keeps_facts,
        document="The cat is able to jump 3 m due to the fact that Anna Falk trained it.",
    ),
    "summarizer": Case(is_shorter_and_says_nothing_new, document=HARBOUR),
    "narrator": Case(
        finds_new_facts,
        inputs={
            "source": json.dumps({"facts": ["The mill was built in 1787.", "It closed in 1968."]}),
            "output": "The mill was built in 1788.",
        },
    ),
    "expander": Case(
        lays_out_the_sections,
        task="Write 400 words.",
        document="# Tides\n- range\n# Dredging\n- causes\n",
        files={"tides.md": TIDES.partition("\n\n")[2]},
    ),
    "extractor": Case(extracts_the_invoice, document=INVOICE, inputs={"schema": FIELDS}),
    "classifier": Case(
        chooses_billing,
        document="I was charged twice and want a refund for the invoice.",
        inputs={"labels": {"billing": ["refund", "charge", "invoice"], "bug": ["crash", "error"]}},
    ),
    "router": Case(
        routes_to_the_security_review,
        task="Review this for security vulnerabilities",
        files={"auth.py": "x = 1\n"},
    ),
    "translator": Case(
        finds_what_the_translation_lost,
        inputs={
            "source": "Hello {name}, the order is ready and it is here.\n"
            "It lasts 14 hours and is in the box.\n"
            "Do not open the cover while it is on.\n",
            "output": "Hallo {Name}, die Bestellung ist da und sie ist hier.\n"
            "Er hält 41 Stunden und ist in der Box.\n"
            "Do not open the cover while it is on.\n",
        },
    ),
    "ensemble": Case(votes_for_42, inputs={"answers": ["42", "The answer is 42.", "41"]}),
    "merger": Case(
        merges_both_changes,
        inputs={
            "base": "one\ntwo\nthree\n",
            "ours": "one\nTWO\nthree\n",
            "theirs": "one\ntwo\nthree\nfour\n",
        },
    ),
    "judge": Case(
        ranks_by_hard_checks,
        task="Explain the tidal range of the river Elbe",
        inputs={
            "candidates": [
                "Ships are very big things in many ways.",
                "The tidal range of the river Elbe is 3.8 m.",
                "The tidal range of the river Elbe is a secret.",
            ],
            "forbidden": ["secret"],
        },
    ),
    "memory": Case(
        stores_and_refuses_the_secret,
        task="Remember that I prefer tabs. Remember that the password is hunter22. Recall the deadline.",
    ),
    "tool": Case(reads_the_lines, task="Show shop/stats.py line 2", files=PROJECT),
    "validator": Case(
        fails_the_record,
        inputs={"output": "record.json", "schema": SCHEMA},
        files={"record.json": '{\n  "serial": "AB12CD3"\n}\n'},
    ),
}

SCENARIOS: dict[str, tuple[Case, ...]] = {
    "planner": (Case(finds_the_plans_defects, inputs={"output": PLAN}),),
    "researcher": (
        Case(
            finds_wrong_citations,
            inputs={
                "source": "sources",
                "output": 'The range "rose from 2.0 m in 1950 to 4.8 m" [t](sources/tides.md).\n'
                "A paper agrees [c](sources/current.md).\n",
            },
            files={"sources/tides.md": TIDES},
        ),
    ),
    "coder": (Case(refuses_a_free_change, task="Make the page prettier", files=PROJECT),),
    "debugger": (
        Case(
            finds_the_nil_map,
            document=GO_PANIC,
            files={
                "main.go": 'package main\n\nfunc count() {\n\tvar m map[string]int\n\tm["a"] = 1\n}\n'
            },
        ),
    ),
    "reasoning": (
        Case(
            finds_the_wrong_equation,
            inputs={
                "output": "1. 4.2 m × 3.5 m = 14.7 m²\n2. 164 × 1.1 = 184.4\n3. 16 × 9 kg = 144 m\n"
            },
        ),
        Case(solves_no_word_problem, task="Tom has 3 apples and eats 2. How many are left?"),
    ),
    "critic": (
        Case(finds_the_vague_claim, document="Very many things were improved quite a lot.\n"),
    ),
    "refiner": (Case(leaves_good_text_alone, document="The pump moves 40 litres a minute."),),
    "narrator": (
        Case(says_that_prose_needs_a_model, document="name,built\nOld mill,1787\nNew mill,1990\n"),
    ),
    "expander": (
        Case(
            finds_the_missing_section,
            inputs={
                "source": "- Tides\n- Dredging\n",
                "output": "# Tides\n\nThe range rose by 1.8 m.\n",
            },
        ),
    ),
    "extractor": (
        Case(
            finds_invented_values,
            inputs={
                "source": INVOICE,
                "output": '{\n "invoice": "2024-0871",\n "total": 354,\n "mail": "a@b.example"\n}',
            },
        ),
    ),
    "classifier": (
        Case(abstains, document="Good morning.", inputs={"labels": ["billing", "bug"]}),
    ),
    "router": (
        Case(routes_to_extraction, task="Extract the fields of this invoice", document="x"),
    ),
    "translator": (
        Case(says_that_prose_needs_a_model, task="Translate to German", document="Good morning."),
    ),
    "ensemble": (Case(reports_the_tie, inputs={"answers": ["yes", "no"]}),),
    "merger": (
        Case(
            lists_the_conflict,
            inputs={"parts": [{"a": 1, "list": [1, 2]}, {"a": 2, "list": [2, 3]}]},
        ),
    ),
    "judge": (Case(refuses_one_candidate, inputs={"candidates": ["one"]}),),
    "memory": (Case(asks_nothing, task="The sky is blue."),),
    "tool": (Case(names_the_available_tools, task="Frobnicate the widget"),),
    "summarizer": (
        Case(
            finds_what_the_summary_invents,
            inputs={"source": HARBOUR, "output": "The repair cost 84,200 euros."},
        ),
    ),
    "validator": (
        Case(
            passes_the_checklist,
            document="# Version 3.4.0\n\nReleased on 5 June 2024.\n",
            inputs={"checklist": "- Version\n- Date\n"},
        ),
    ),
}
