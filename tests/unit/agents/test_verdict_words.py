"""A verdict is passed, failed or not judged wherever it is shown, and its score says what it is of."""

import pytest

from agents.outputs.patch import Patch
from agents.outputs.verdict import Verdict
from agents.procedures.reducers import report
from agents.reports.markdown import markdown_of
from agents.runs.result import RunResult, RunState
from app.commands.agents.findings_table import print_result

UNJUDGED = Verdict(
    score=98,
    score_of="the detectors' findings",
    not_judged="the tests did not run. No Python with pytest was found.",
    reasons=["98 of 100 by the detectors' findings (2 low); the tests did not run."],
)
PASSED = UNJUDGED.model_copy(update={"passed": True, "not_judged": ""})
FAILED = UNJUDGED.model_copy(update={"passed": False, "not_judged": ""})
WORDS = [
    (UNJUDGED, "Not judged: the tests did not run. No Python with pytest was found."),
    (PASSED, "Passed."),
    (FAILED, "Failed."),
]


def result_of(verdict):
    return RunResult("run-1", "output_verifier", RunState.OK, verdict)


@pytest.mark.parametrize(("verdict", "words"), WORDS)
def test_a_message_of_a_conversation_says_it(verdict, words):
    text = markdown_of("output_verifier", result_of(verdict).fields())
    assert f"**{words}**" in text
    assert "- 98 of 100 by the detectors' findings (2 low); the tests did not run." in text
    assert "**score**" not in text
    assert "True" not in text


@pytest.mark.parametrize(("verdict", "words"), WORDS)
def test_the_report_says_it(verdict, words):
    assert f"**{words}**" in report({"verdict": result_of(verdict)}).text


@pytest.mark.parametrize(("verdict", "words"), WORDS)
def test_the_command_line_says_it(verdict, words, capsys):
    print_result(result_of(verdict))
    shown = " ".join(capsys.readouterr().out.split())
    assert words in shown
    assert "98 of 100 by the detectors' findings" in shown
    assert "passed:" not in shown


def test_a_verdict_that_could_not_be_made_has_no_decision():
    text = markdown_of("v", result_of(Verdict(cannot_do="There is nothing.")).fields())
    assert "There is nothing." in text
    assert "judged" not in text


@pytest.mark.parametrize(
    ("output", "words"),
    [
        (Patch(cannot_do="This change needs a model."), "coder: nothing done"),
        (Patch(diff="--- a/x.py"), "coder: a change"),
        (Patch(), "coder: no findings"),
    ],
)
def test_an_agent_without_findings_says_what_it_has_instead(output, words, capsys):
    result = RunResult("run-1", "coder", RunState.OK, output)
    print_result(result)
    assert words in " ".join(capsys.readouterr().out.split())
    assert words in markdown_of("coder", result.fields()).replace("*", "")
