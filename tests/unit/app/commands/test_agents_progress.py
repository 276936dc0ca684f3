"""How far the test of a model is, on standard error."""

from agents.api.events import RunEvent, RunEventType
from agents.steps.measures.measure import Progress
from app.commands.agents import repairing
from app.commands.agents.progress import show_steps, show_test


def event(done, total=2):
    progress = Progress("toy", "loops of tools", done, total)
    return RunEvent(
        done, 0.0, "r", RunEventType.MODEL_TEST, agent="planner", data=progress.fields()
    )


def test_a_file_gets_a_line_at_the_beginning_and_one_at_the_end(capsys):
    for done in range(3):
        show_steps(event(done))
    assert capsys.readouterr().err.splitlines() == [
        "testing toy once: loops of tools, 0 of 2",
        "testing toy once: loops of tools, 2 of 2",
    ]


def test_a_terminal_gets_one_line_that_grows(capsys, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    for done in range(3):
        show_test(Progress("toy", "loops", done, 2))
    text = capsys.readouterr().err
    assert text.count("\n") == 1
    assert text.endswith("\r\x1b[Ktesting toy once: loops, 2 of 2\n")


def test_a_repair_tells_it_too(capsys):
    repairing.show_progress(event(0))
    assert "testing toy once" in capsys.readouterr().err
