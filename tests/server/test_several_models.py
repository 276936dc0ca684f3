"""A server of several models over HTTP: names, waiting for loads, changes, and which engine answers."""

import json
import os
import signal
import subprocess
import sys
import threading

import httpx
import pytest

from app.server.middleware.model_waits import _error_event
from engine.api.request import FinishReason
from engine.api.snapshot import EngineState
from engine.clients.http_client import HttpClient
from tests.fakes.tiny_gguf import write_tiny_gguf
from tests.fakes.toy_models import ToyModels
from tests.server.byte_engine import wait_until
from tests.server.client_contract import ask, drain_all
from tests.server.live import live, post_and_stay


class Served:
    """A live server of toy models."""

    def __init__(self, toys, *names, config=None, **options):
        self.toys = toys
        self.models = toys.served(*names, **options)
        self._live = live(self.models, **config or {})

    def __enter__(self):
        self.models.start()
        self.server = self._live.__enter__()
        self.http = httpx.Client(base_url=self.server.url, timeout=60)
        return self

    def __exit__(self, *error):
        self.http.close()
        self._live.__exit__(*error)
        self.models.close()

    def complete(self, model, **fields):
        body = {"model": model, "prompt": "hello", "max_tokens": 4, "temperature": 0} | fields
        return self.http.post("/v1/completions", json=body)

    def change(self, model, what, **fields):
        return self.http.post(f"/v1/models/{model}/{what}", json=fields)

    def statuses(self):
        listed = self.http.get("/v1/models").json()["data"]
        return {one["id"]: one["status"] for one in listed if "details" in one}

    def wait_loaded(self, *names):
        # Not `is_loaded`: the load itself ends a moment later.
        ready = EngineState.READY
        wait_until(lambda: all(self.state_of(name) is ready for name in names))

    def state_of(self, name):
        return self.models.snapshot(self.models.find(name)).state


@pytest.fixture
def toys(tmp_path):
    return ToyModels(tmp_path)


@pytest.fixture
def served(toys):
    with Served(toys, "first", "second", aliases={"gpt-4o": "second"}) as running:
        running.wait_loaded("first", "second")
        yield running


def test_each_name_is_answered_by_its_model(served):
    for name in ("first", "second"):
        answer = served.complete(name).json()
        assert answer["model"] == name
        chat = {"model": name, "messages": [{"role": "user", "content": "hi"}], "max_tokens": 2}
        chat["ignore_eos"] = True
        assert served.http.post("/v1/chat/completions", json=chat).json()["model"] == name
        totals = served.models.find(name).engine.snapshot().totals
        assert totals.generation_tokens == 6
    ids = [
        served.http.post("/tokenize", json={"model": name, "prompt": "a"}).json()["tokens"]
        for name in ("first", "second")
    ]
    assert ids[0] != ids[1]  # the second one's tokenizer adds a token


def test_an_alias_is_answered_by_its_model_which_the_answer_names(served):
    assert served.complete("gpt-4o").json()["model"] == "second"
    assert served.http.get("/v1/models/gpt-4o").json()["id"] == "second"
    listed = served.http.get("/v1/models").json()["data"]
    assert {one["id"]: one.get("aliases") for one in listed[:2]} == {
        "first": None,
        "second": ["gpt-4o"],
    }


def test_an_unknown_name_is_a_404_that_lists_the_models(served):
    refused = served.complete("third")
    assert refused.status_code == 404
    assert refused.json()["error"]["code"] == "model_not_found"
    assert "this server has 'first', 'second'" in refused.json()["error"]["message"]
    assert served.http.get("/v1/models/third").status_code == 404
    assert served.change("third", "load").status_code == 404
    assert served.change("third", "unload").status_code == 404
    assert served.change("third", "reload").status_code == 404


def test_ready_while_any_model_is(toys):
    with Served(toys, "broken", "second") as served:
        served.wait_loaded("second")
        assert served.http.get("/ready").status_code == 200
        refused = served.complete("broken")
        assert refused.status_code == 503
        assert "The file is damaged" in refused.json()["error"]["message"]
        assert served.complete("second").status_code == 200
        assert served.change("second", "unload").status_code == 200
        wait_until(lambda: served.http.get("/ready").status_code == 503)


def test_a_request_waits_for_its_model_instead_of_failing(tmp_path):
    gate = threading.Semaphore(0)
    toys = ToyModels(tmp_path, load_gates={"second": gate})
    with Served(toys, "first", max_loaded=2, any_installed=True) as served:
        served.wait_loaded("first")
        answers = []
        waiting = [
            threading.Thread(target=lambda: answers.append(served.complete("second")))
            for _ in range(8)  # more than the default executor has threads on a small machine
        ]
        for one in waiting:
            one.start()
        wait_until(lambda: served.statuses().get("second") == "loading")
        assert served.http.get("/v1/models/second").json()["loading_progress"] == 0.5
        assert served.complete("first").status_code == 200  # nobody else waits
        gate.release()
        for one in waiting:
            one.join()
        assert [one.status_code for one in answers] == [200] * 8
        assert {one.json()["model"] for one in answers} == {"second"}
        assert toys.loads == ["first", "second"]
        assert served.statuses() == {
            "first": "ready",
            "second": "ready",
            "broken": "unloaded",
            "third": "unloaded",
        }


@pytest.mark.parametrize("path", ["/v1/completions", "/v1/chat/completions"])
def test_a_stream_gets_comments_with_the_progress_of_the_load(tmp_path, path):
    gate = threading.Semaphore(0)
    toys = ToyModels(tmp_path, load_gates={"second": gate})
    body = {"model": "second", "stream": True, "max_tokens": 4}
    body |= (
        {"prompt": "a"} if "chat" not in path else {"messages": [{"role": "user", "content": "a"}]}
    )
    config = {"keep_alive_s": 0.02}
    with (
        Served(toys, "first", max_loaded=2, any_installed=True, config=config) as served,
        served.http.stream("POST", path, json=body) as answer,
    ):
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/event-stream")
        assert answer.headers["x-request-id"]
        lines = answer.iter_lines()
        while next(lines) != ": loading second, 50%":
            pass
        gate.release()
        data = [line for line in lines if line.startswith("data: ")]
        assert data[-1] == "data: [DONE]"
        assert {json.loads(one[6:])["model"] for one in data[:-1]} == {"second"}


def test_a_refusal_after_comments_is_an_event(tmp_path):
    gate = threading.Semaphore(0)
    toys = ToyModels(tmp_path, load_gates={"second": gate})
    config = {"keep_alive_s": 0.02}
    for prompt, failing, code in (("a" * 300, False, "context_length_exceeded"), ("a", True, None)):
        body = {"model": "second", "stream": True, "prompt": prompt}
        if failing:
            toys.failing.add("second")
        with (
            Served(toys, "first", max_loaded=2, any_installed=True, config=config) as served,
            served.http.stream("POST", "/v1/completions", json=body) as answer,
        ):
            lines = answer.iter_lines()
            assert next(lines).startswith(": loading second")
            gate.release()
            (data,) = [line for line in lines if line.startswith("data: ")]
            error = json.loads(data[6:])["error"]
            assert code is None or error["code"] == code
            assert code is not None or "The weights are damaged" in error["message"]


def test_a_client_that_leaves_while_it_waits_is_not_waited_for(toys):
    with Served(toys, "first", max_loaded=1, any_installed=True) as served:
        served.wait_loaded("first")
        lease = served.models.use("first")  # keeps the only place
        body = {"model": "second", "prompt": "a"}
        with post_and_stay(served.server.url, "/v1/completions", body):
            wait_until(lambda: (one := served.models.find("second")) and one.leases)
        wait_until(lambda: not served.models.find("second").leases)
        served.models.release(lease)
        wait_until(lambda: served.models.find("second").change is None)
        assert served.statuses()["second"] == "unloaded"
        assert served.complete("first").status_code == 200
        assert toys.loads == ["first"]
        counted = 'pravaha_http_disconnects_total{route="/v1/completions"} 1.0'
        wait_until(lambda: counted in served.http.get("/metrics").text)


def test_the_least_recently_used_model_makes_room_for_the_one_that_a_request_names(toys):
    with Served(toys, "first", max_loaded=2, any_installed=True) as served:
        for name in ("first", "second", "first", "third"):
            assert served.complete(name).status_code == 200
        statuses = served.statuses()
        assert [name for name, one in statuses.items() if one == "ready"] == ["first", "third"]


@pytest.mark.parametrize("keep_alive", [0, "0", "0s"])
def test_keep_alive_of_a_request_unloads_its_model(served, keep_alive):
    assert served.complete("second", keep_alive=keep_alive).status_code == 200
    wait_until(lambda: served.statuses() == {"first": "ready", "second": "unloaded"})
    assert served.complete("second", keep_alive=-1).status_code == 200
    assert served.statuses()["second"] == "ready"


def test_keep_alive_counts_from_the_end_of_the_answer(tmp_path):
    gate = threading.Semaphore(0)
    toys = ToyModels(tmp_path, gates={"second": gate})
    with Served(toys, "first", "second") as served:
        served.wait_loaded("first", "second")
        body = {"model": "second", "prompt": "a", "stream": True, "keep_alive": 0, "max_tokens": 3}
        with served.http.stream("POST", "/v1/completions", json=body) as answer:
            gate.release(1)
            lines = answer.iter_lines()
            next(lines)
            assert served.statuses()["second"] == "ready"
            gate.release(100)
            assert "data: [DONE]" in list(lines)
        wait_until(lambda: served.statuses()["second"] == "unloaded")


@pytest.mark.parametrize("keep_alive", ["soon", [], {}, True, "5 parsecs", "nan"])
def test_a_keep_alive_that_is_no_time_is_a_400(served, keep_alive):
    refused = served.complete("second", keep_alive=keep_alive)
    assert refused.status_code == 400
    assert refused.json()["error"]["param"] == "keep_alive"


def test_a_model_whose_unload_waits_is_draining_wherever_it_is_listed(served):
    served.complete("second")
    lease = served.models.use("second")
    answer = served.change("second", "unload")
    assert (answer.status_code, answer.json()["status"]) == (200, "draining")
    assert served.statuses()["second"] == "draining"
    installed = served.http.get("/installed_models").json()["data"]
    assert {one["name"]: one["status"] for one in installed}["second"] == "draining"
    served.models.release(lease)
    wait_until(lambda: served.statuses()["second"] == "unloaded")


def test_load_and_unload_by_name(served):
    assert served.change("gpt-4o", "unload").status_code == 200
    wait_until(lambda: served.statuses()["second"] == "unloaded")
    refused = served.change("second", "unload")
    assert (refused.status_code, refused.json()["error"]["code"]) == (503, "unavailable")
    assert served.change("second", "load", keep_alive="5m").status_code == 200
    served.wait_loaded("second")
    assert served.models.find("second").keep_alive_s == 300
    again = served.change("second", "load").json()
    assert again == {"status": "ready", "next_model": None, "beside_others": True}
    assert served.toys.loads == ["first", "second", "second"]


def test_a_load_that_is_impossible_is_a_400_and_changes_nothing(toys):
    with Served(toys, "first", max_loaded=2, any_installed=True) as served:
        served.wait_loaded("first")
        refused = served.change("broken", "load")
        assert refused.status_code == 400
        assert refused.json()["error"]["code"] == "model_unusable"
        assert served.complete("first").status_code == 200


@pytest.mark.parametrize("name", ["first", "second"])
def test_a_reload_under_load_drops_no_request(toys, name):
    with Served(toys, "first", "second") as served:
        served.wait_loaded("first", "second")
        expected = served.complete(name).json()["choices"]
        stop, failures, count = threading.Event(), [], [0]

        def keep_asking(streams):
            with httpx.Client(base_url=served.server.url, timeout=60) as http:
                body = {"model": name, "prompt": "hello", "max_tokens": 4, "temperature": 0}
                while not stop.is_set():
                    answer = http.post("/v1/completions", json=body | {"stream": streams})
                    count[0] += 1
                    good = "[DONE]" in answer.text if streams else None
                    if good is None:
                        good = answer.json().get("choices") == expected
                    if answer.status_code != 200 or not good or '"error"' in answer.text:
                        failures.append(answer.text)

        askers = [threading.Thread(target=keep_asking, args=(i % 2 == 0,)) for i in range(4)]
        for one in askers:
            one.start()
        loads = 2
        for _ in range(5):
            before = count[0]
            assert served.change(name, "reload").status_code == 200
            loads += 1
            wait_until(
                lambda loads=loads, before=before: (
                    len(toys.loads) == loads
                    and served.models.find(name).is_loaded
                    and served.models._current is None
                    and count[0] > before + 8
                )
            )
        stop.set()
        for one in askers:
            one.join()
        assert failures == []
        wait_until(lambda: not served.models._retiring)


def test_a_fork_finds_the_engine_of_its_parent(tmp_path):
    gate = threading.Semaphore(0)
    toys = ToyModels(tmp_path, gates={"second": gate})
    with Served(toys, "first", "second") as served:
        served.wait_loaded("first", "second")
        body = {"model": "second", "prompt": "hello", "max_tokens": 50, "ignore_eos": True}
        body |= {"stream": True, "request_id": "parent"}
        with served.http.stream("POST", "/v1/completions", json=body) as answer:
            gate.release(3)
            lines = answer.iter_lines()  # kept: a dropped iterator disconnects
            next(lines)
            unknown = served.http.post("/fork", json={"parent": "parent", "model": "first"})
            assert unknown.status_code == 404
            fork = {"parent": "parent", "max_tokens": 2, "ignore_eos": True}
            children = []
            forking = threading.Thread(
                target=lambda: children.append(served.http.post("/fork", json=fork))
            )
            forking.start()
            engine = served.models.find("second").engine
            wait_until(lambda: len(engine.request_table()) == 2)
            gate.release(1000)
            forking.join()
        assert children[0].status_code == 200
        assert children[0].json()["model"] == "second"


def test_metrics_have_a_label_for_each_model(served):
    served.complete("first", max_tokens=1)
    served.complete("second", max_tokens=3)
    text = served.http.get("/metrics").text
    assert text.count("# TYPE pravaha_generation_tokens_total ") == 1
    assert 'pravaha_generation_tokens_total{model_name="first"} 1.0' in text
    assert 'pravaha_generation_tokens_total{model_name="second"} 3.0' in text


def test_the_state_of_each_model_can_be_read(served):
    served.complete("second")
    for path in (
        "/snapshot",
        "/blocks",
        "/events",
        "/requests",
        "/steps",
        "/prefix_tree",
        "/blocks/0",
    ):
        assert served.http.get(path, params={"model": "second"}).status_code == 200, path
        assert served.http.get(path, params={"model": "third"}).status_code == 404, path
    first, second = (
        served.http.get("/snapshot", params={"model": name}).json()["snapshot"]["totals"]["steps"]
        for name in ("first", "gpt-4o")
    )
    assert first == 0 < second
    assert served.http.get("/snapshot").json()["snapshot"]["model"]["name"] == "first"
    scheduling = {"model": "second", "policy": "sjf"}
    assert served.http.post("/scheduling", json=scheduling).json()["policy"] == "sjf"
    assert served.models.find("first").engine.scheduling.policy == "fcfs"
    assert served.http.post("/price", json={"model": "second", "tokens": [1, 2]}).status_code == 200
    pin = {"model": "second", "tokens": [1, 2], "pin_id": "x"}
    assert served.http.post("/pin", json=pin).status_code == 200
    assert (
        served.http.post("/residency", json={"model": "second", "tokens": [1]}).status_code == 200
    )
    assert served.http.post("/unpin", json={"pin_id": "x"}).status_code == 200


def test_an_attached_client_uses_the_first_model(served):
    client = HttpClient(served.server.url)
    try:
        wait_until(lambda: client.snapshot().state is EngineState.READY)
        assert client.snapshot().model.name == "first"
        assert drain_all(client, client.submit(ask()))[-1].finish_reason is FinishReason.LENGTH
    finally:
        client.close()


@pytest.mark.parametrize("installed", [True, False])
def test_an_attached_client_changes_between_the_models_of_the_server(toys, installed):
    options = {"max_loaded": 2, "any_installed": True} if installed else {}
    with Served(toys, *(["first"] if installed else ["first", "second"]), **options) as served:
        client = HttpClient(served.server.url)

        def uses(name):
            snapshot = client.snapshot()
            return snapshot.state is EngineState.READY and snapshot.model.name == name

        try:
            wait_until(lambda: uses("first"))
            listed = {one.name: one.loaded for one in client.models()}
            assert listed == {"first": True, "second": False} | (
                {"broken": False, "third": False} if installed else {}
            )
            drain_all(client, client.submit(ask()))
            wait_until(lambda: client.recent_steps(0))
            steps = client.recent_steps(0)
            first = client.tokenize("a")
            client.load_model("second")
            wait_until(lambda: uses("second"))
            assert client.tokenize("a") == first  # without the token at the beginning
            assert client.bos_id() is not None
            assert [one.name for one in client.models() if one.loaded] == ["second"]
            assert drain_all(client, client.submit(ask()))[-1].finish_reason is FinishReason.LENGTH
            second = served.models.find("second").engine
            wait_until(lambda: len(client.recent_steps(0)) == second.snapshot().step)
            assert client.recent_steps(0) != steps
            wait_until(lambda: (blocks := client.blocks(-1)) and len(blocks.state) == 64)
            assert client.price([1, 2, 3]).result(30).prefill_tokens == 3
            client.load_model("first")
            wait_until(lambda: uses("first"))
            assert client.bos_id() is None
            assert served.statuses()["second"] == "ready"  # others may use it
        finally:
            client.close()


def test_an_attached_client_whose_model_is_gone_goes_on_with_the_first(toys, tmp_path):
    with Served(toys, "first", "second") as served:
        client = HttpClient(served.server.url)
        try:
            served.wait_loaded("first", "second")
            client.load_model("second")
            wait_until(lambda: (model := client.snapshot().model) and model.name == "second")
            with served.models._changed:  # as a server that was started again without it
                gone = served.models._models.pop("second")
            gone.engine.shutdown()
            wait_until(lambda: (model := client.snapshot().model) and model.name == "first")
            assert drain_all(client, client.submit(ask()))[-1].finish_reason is FinishReason.LENGTH
        finally:
            client.close()


def test_the_drain_ends_requests_that_wait_for_a_model(tmp_path):
    toys = ToyModels(tmp_path, load_gates={"second": threading.Semaphore(0)})
    config = {"drain_s": 0.1, "keep_alive_s": 0.02}
    answers = []
    with Served(toys, "first", max_loaded=2, any_installed=True, config=config) as served:
        served.wait_loaded("first")
        asker = threading.Thread(target=lambda: answers.append(served.complete("second")))
        asker.start()
        wait_until(lambda: served.statuses().get("second") == "loading")
        served.server.server.request_exit()
        asker.join()
    assert answers[0].status_code == 503
    assert answers[0].json()["error"]["code"] == "shutting_down"


def test_the_body_of_a_request_is_not_kept_once_it_has_its_model(served, monkeypatch):
    from app.server.middleware import model_waits

    kept = []
    drop = model_waits._Body.drop
    monkeypatch.setattr(
        model_waits._Body, "drop", lambda body: (kept.append(len(body._messages)), drop(body))[1]
    )
    served.complete("first")
    assert kept[0] == 1  # dropped when the model was found
    assert kept[1:] == [0]  # and there was nothing left when the answer began


def test_the_command_serves_several_models(tmp_path):
    paths = [write_tiny_gguf(tmp_path / f"{name}.gguf", seed=i) for i, name in enumerate("ab")]
    arguments = ["--serve", "--port", "0", "--kv-cache", "1MiB", "--alias", f"gpt-4o={paths[1]}"]
    for path in paths:
        arguments += ["--model", str(path)]
    folders = {f"PRAVAHA_{name}_DIR": str(tmp_path / name) for name in ("CACHE", "DATA", "CONFIG")}
    process = subprocess.Popen(
        [sys.executable, "-c", "from app.cli import main; main()", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=os.environ | folders,
    )
    try:
        lines = []
        for line in process.stdout:
            lines.append(line)
            if line.startswith("Model b"):
                break
        url = lines[0].split()[3].removesuffix("/v1")
        assert [line.split()[1] for line in lines[3:]] == ["a", "b"]
        body = {"model": "gpt-4o", "prompt": "x", "max_tokens": 2}
        assert httpx.post(f"{url}/v1/completions", json=body, timeout=30).json()["model"] == "b"
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.wait()


def test_the_command_refuses_shares_that_do_not_fit_before_it_listens(tmp_path):
    path = write_tiny_gguf(tmp_path / "a.gguf")
    result = subprocess.run(
        [
            *(sys.executable, "-c", "from app.cli import main; main()", "--serve", "--port", "0"),
            *("--model", str(path), "--model-memory", f"{path}=1000"),
        ],
        capture_output=True,
        text=True,
        env=os.environ | {"PRAVAHA_CACHE_DIR": str(tmp_path), "PRAVAHA_DATA_DIR": str(tmp_path)},
    )
    assert result.returncode != 0
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith("pravaha: a does not fit in its share of memory: ")


def test_a_resumable_stream_keeps_its_model_while_its_client_is_away(tmp_path):
    gate = threading.Semaphore(0)
    toys = ToyModels(tmp_path, gates={"second": gate})
    with Served(toys, "first", "second") as served:
        served.wait_loaded("first", "second")
        body = {"model": "second", "prompt": "a", "stream": True, "max_tokens": 20, "keep_alive": 0}
        body |= {"ignore_eos": True, "request_id": "kept", "resumable": True}
        with served.http.stream("POST", "/v1/completions", json=body) as answer:
            gate.release(1)
            next(answer.iter_lines())
        second = served.models.find("second")
        wait_until(lambda: not second.leases)
        assert second.in_use
        with served.http.stream("GET", "/streams/kept") as rest:
            gate.release(1000)
            assert "data: [DONE]" in list(rest.iter_lines())
        gate.release(1000)
        wait_until(lambda: served.statuses()["second"] == "unloaded")


@pytest.mark.parametrize(
    ("body", "event"),
    [
        (b'{"error": {"message": "no"}}', b'data: {"error": {"message": "no"}}\n\n'),
        (
            b'{"type": "error", "error": {}}',
            b'event: error\ndata: {"type": "error", "error": {}}\n\n',
        ),
        (b"no JSON", b"data: no JSON\n\n"),
    ],
)
def test_an_error_of_any_face_becomes_an_event(body, event):
    assert _error_event(body) == event
