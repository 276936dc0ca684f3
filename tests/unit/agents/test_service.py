"""The run service and the views folded from events."""

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents import Cluster
from agents.api.errors import InvalidTask, UnknownAgent
from agents.api.events import RunEvent, RunEventType, RunState
from agents.runs.event_log import EventLog
from agents.service.confined_service import ConfinedRunService
from agents.service.local_service import LocalRunService
from agents.service.run_request import RunRequest, request_from_fields
from agents.service.run_view import RunView, fold


@pytest.fixture
def service(registry, roster, tmp_path):
    opened = LocalRunService(lambda: Cluster(registry=registry, roster=roster), roots=[tmp_path])
    yield opened
    opened.close()


def finished(service, run_id):
    """Wait until the run's result is there."""
    done = threading.Event()
    service.on_change(lambda: service.result(run_id) is not None and done.set())
    if service.result(run_id) is None:
        assert done.wait(20)
    return service.result(run_id)


def test_a_run_is_started_followed_and_remembered(service, tmp_path):
    (tmp_path / "a.txt").write_text("bad\n")
    run_id = service.start(RunRequest("agent", "words", (".",)))
    result = finished(service, run_id)
    assert result["findings"][0]["rule"] == "bad-word"
    (view,) = service.runs()
    assert (view.id, view.state, dict(view.severities)) == (run_id, RunState.OK, {"high": 1})
    assert view.rows[0].agent == "words"
    assert [event.sequence for event in service.events(run_id, 1)] == [1, 2, 3]


def test_a_run_is_cancelled(service):
    run_id = service.start(RunRequest("agent", "endless"))
    service.cancel(run_id)
    assert finished(service, run_id)["state"] == "cancelled"


def test_unknown_names_and_paths_outside_the_root_are_refused(service):
    with pytest.raises(UnknownAgent):
        service.start(RunRequest("agent", "nobody"))
    with pytest.raises(InvalidTask, match="outside"):
        service.start(RunRequest("agent", "words", ("../..",)))
    with pytest.raises(InvalidTask, match="no file or folder"):
        service.start(RunRequest("agent", "words", ("missing",)))
    assert not service.runs()


def test_without_roots_no_path_is_read(registry, roster):
    closed = LocalRunService(lambda: Cluster(registry=registry, roster=roster), roots=())
    with pytest.raises(InvalidTask, match="--agents-root"):
        closed.start(RunRequest("agent", "words", ("a",)))
    closed.close()


def test_the_catalogue_lists_agents(service):
    assert [one["name"] for one in service.catalogue()][:2] == ["words", "unlucky"]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "kind"),
        ({"kind": "agent"}, "name is missing"),
        ({"kind": "agent", "name": "x", "colour": 1}, "no field 'colour'"),
        ({"kind": "agent", "name": "x", "paths": [""]}, "Every path"),
        ({"kind": "agent", "name": "x", "tokens": -1}, "tokens"),
        ({"kind": "agent", "name": "x", "seconds": True}, "seconds"),
        ({"kind": "agent", "name": "x", "mode": "root"}, "mode"),
        ({"kind": "agent", "name": 3}, "name"),
    ],
)
def test_a_wrong_request_is_refused(fields, message):
    with pytest.raises(InvalidTask, match=message):
        request_from_fields(fields)


def test_a_request_survives_json():
    request = RunRequest("pipeline", "toy", ("a",), "t", "d", False, "deny", 5, 1.5, "c")
    assert request_from_fields(request.fields()) == request


EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["", "n1"]),
        st.sampled_from(["a", "b"]),
        st.sampled_from(
            [
                (RunEventType.RUN_STATE, {"state": "running"}),
                (RunEventType.RUN_STATE, {"state": "ok"}),
                (RunEventType.STEP_STARTED, {"step": 1}),
                (RunEventType.STEP_FINISHED, {"start": 1.0, "end": 1.5, "n_gen": 2}),
                (RunEventType.BUDGET, {"computed_tokens": 7, "cached_tokens": 4}),
                (RunEventType.BUDGET, {"max_tokens": 90, "max_seconds": 5.0, "max_steps": 3}),
                (RunEventType.TOOL_STARTED, {"tool": "read"}),
                (RunEventType.TOOL_FINISHED, {"tool": "read"}),
                (RunEventType.APPROVAL_REQUESTED, {}),
                (RunEventType.FINDING, {"severity": "low", "id": "f1"}),
                (RunEventType.FINDING, {"severity": "high", "id": "f2"}),
            ]
        ),
    ),
    max_size=20,
)


@given(EVENTS, st.integers(0, 20))
def test_folding_in_parts_gives_the_same_view(drawn, cut):
    events = [
        RunEvent(at, float(at), "run", kind, node, agent, "", data)
        for at, (node, agent, (kind, data)) in enumerate(drawn)
    ]
    empty = RunView("run", "x", "")
    whole = fold(empty, events)
    assert fold(fold(empty, events[:cut]), events) == whole
    used = {(one.node, one.agent) for one in events if "computed_tokens" in one.data}
    assert (whole.computed_tokens, whole.cached_tokens) == (7 * len(used), 4 * len(used))
    assert whole.summary().startswith(f"{len(whole.rows)}")


def test_no_row_of_a_finished_run_is_queued_or_running():
    log = EventLog("r", clock=lambda: 5.0)
    log.append(
        RunEventType.RUN_STATE, state="running", nodes={"a": "one", "b": "two", "c": "three"}
    )
    log.append(RunEventType.NODE_STATE, node="a", agent="one", state="ok")
    log.append(RunEventType.NODE_STATE, node="b", agent="two", state="running")
    log.append(RunEventType.RUN_STATE, state="cancelled")
    view = fold(RunView("r", "pipeline", ""), log.since(0))
    assert [row.group.value for row in view.rows] == ["done", "stopped", "skipped"]
    assert all(row.finished == 5.0 for row in view.rows)


def test_over_http_new_runs_are_confined_and_the_persons_runs_are_seen(registry, roster, tmp_path):
    (tmp_path / "open").mkdir()
    (tmp_path / "open" / "a.txt").write_text("bad\n")
    (tmp_path / "secret.txt").write_text("bad\n")
    own = LocalRunService(lambda: Cluster(registry=registry, roster=roster))
    try:
        served = ConfinedRunService(own, [tmp_path / "open"])
        for path in ("../secret.txt", str(tmp_path / "secret.txt")):
            with pytest.raises(InvalidTask, match="outside"):
                served.start(RunRequest("agent", "words", (path,)))
        result = finished(served, served.start(RunRequest("agent", "words", ("a.txt",))))
        assert [one["rule"] for one in result["findings"]] == ["bad-word"]
        with pytest.raises(InvalidTask, match="--agents-root"):
            ConfinedRunService(own, ()).start(RunRequest("agent", "words", ("a.txt",)))
        mine = own.start(RunRequest("agent", "words", (str(tmp_path / "secret.txt"),)))
        finished(own, mine)
        assert served.runs()[0].id == mine
        assert served.events(mine, 0) == own.events(mine, 0)
        served.close()
        assert own.catalogue()  # still open
    finally:
        own.close()
