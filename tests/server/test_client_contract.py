"""The client contract over both transports, and the HTTP client without a server."""

import socket

import pytest

from engine.api.errors import EngineUnavailable, InvalidRequest, QueueFull
from engine.api.request import FinishReason
from engine.api.snapshot import EngineState
from engine.clients import http_polling
from engine.clients.http_client import HttpClient
from engine.clients.in_process import InProcessClient
from tests.server.byte_engine import byte_engine, wait_until
from tests.server.client_contract import DEFAULTS, ClientContract, ask, drain_all
from tests.server.live import live
from tests.server.scripted_engine import ScriptedEngine, batch


@pytest.fixture(scope="module")
def slow_engine():
    with byte_engine(step_s=0.02, max_num_seqs=4, defaults=DEFAULTS) as engine:
        yield engine


def test_generation_defaults_can_be_turned_off():
    with byte_engine(defaults=DEFAULTS, generation_config="none") as engine:
        assert engine.snapshot().model.generation_defaults.values() == {}


@pytest.mark.parametrize("add_bos", [False, True])
def test_both_transports_know_the_token_that_plain_completions_begin_with(add_bos):
    with byte_engine(add_bos=add_bos) as engine, live(engine) as server:
        remote = HttpClient(server.url)
        try:
            wait_until(lambda: remote.snapshot().state is EngineState.READY)
            expected = engine.tokenizer.bos_id if add_bos else None
            assert InProcessClient(engine).bos_id() == expected
            assert remote.bos_id() == expected
        finally:
            remote.close()


class TestInProcess(ClientContract):
    @pytest.fixture
    def client(self, engine):
        return InProcessClient(engine)

    @pytest.fixture
    def slow_client(self, slow_engine):
        return InProcessClient(slow_engine)


class TestHttp(ClientContract):
    @pytest.fixture(scope="class")
    def client(self, server):
        client = HttpClient(server.url)
        wait_until(lambda: client.snapshot().state is EngineState.READY)
        yield client
        client.close()

    @pytest.fixture(scope="class")
    def slow_client(self, slow_engine):
        with live(slow_engine, api_key="k") as server:
            client = HttpClient(f"{server.url}/v1/", api_key="k")
            wait_until(lambda: client.snapshot().state is EngineState.READY)
            yield client
            client.close()


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


@pytest.fixture
def join():
    clients = []

    def make(url, **options):
        clients.append(HttpClient(url, **options))
        return clients[-1]

    yield make
    for client in clients:
        client.close()


def test_a_server_that_is_away_is_said_to_be_away(join):
    client = join(f"http://127.0.0.1:{free_port()}")
    wait_until(lambda: client.snapshot().state is EngineState.FAILED)
    assert "does not answer" in client.snapshot().last_error
    with pytest.raises(EngineUnavailable, match="does not answer"):
        client.submit(ask())
    with pytest.raises(EngineUnavailable, match="does not answer"):
        client.tokenize("x")


def test_the_client_finds_the_server_when_it_comes_and_when_it_comes_back(join, engine):
    port = free_port()
    client = join(f"http://127.0.0.1:{port}")
    wait_until(lambda: client.snapshot().state is EngineState.FAILED)
    epochs = []
    for _ in range(2):
        with live(engine, port=port):
            wait_until(lambda: client.snapshot().state is EngineState.READY)
            drain_all(client, client.submit(ask()))
            newest = epochs[-1] if epochs else -1
            wait_until(lambda newest=newest: client.blocks(newest) is not None)
            epochs.append(client.blocks(newest).epoch)
        wait_until(lambda: client.snapshot().state is EngineState.FAILED)
    assert epochs == sorted(set(epochs))


def test_a_state_change_wakes_the_reader(join):
    changes = []
    client = join(f"http://127.0.0.1:{free_port()}")
    client.on_wake(lambda: changes.append(client.snapshot().state))
    wait_until(lambda: EngineState.FAILED in changes)


def test_a_connection_that_breaks_ends_the_answer_with_what_came(join):
    engine = ScriptedEngine(lambda request: [batch(request, "partial")])
    with live(engine) as server:
        client = join(server.url)
        request_id = client.submit(ask())
        wait_until(lambda: client.drain(request_id) is not None)
        server.context.drain.expire()
        last = drain_all(client, request_id)[-1]
    assert last.finish_reason is FinishReason.ERROR
    assert "shutting down" in last.error


@pytest.mark.parametrize(
    ("refusal", "expected"),
    [
        (QueueFull("The queue is full."), QueueFull),
        (EngineUnavailable("Gone."), EngineUnavailable),
        (InvalidRequest("No.", param="top_k"), InvalidRequest),
    ],
)
def test_refusals_arrive_as_the_engines_own(join, refusal, expected):
    with live(ScriptedEngine(lambda request: refusal)) as server:
        client = join(server.url)
        with pytest.raises(expected, match=str(refusal)):
            client.submit(ask())


def test_the_wrong_key_is_said_to_be_wrong(join):
    with live(ScriptedEngine(lambda request: []), api_key="right") as server:
        client = join(server.url, api_key="wrong")
        wait_until(lambda: client.snapshot().state is EngineState.FAILED)
        assert "API key" in client.snapshot().last_error


def test_another_server_at_the_address_is_an_error(join):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        client = join(f"http://127.0.0.1:{listener.getsockname()[1]}")
        connection, _ = listener.accept()
        connection.recv(65536)
        connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n[]")
        wait_until(lambda: client.snapshot().state is EngineState.FAILED)
        assert "not a Pravāha server" in client.snapshot().last_error
        connection.close()


def test_only_http_urls_are_joined():
    with pytest.raises(InvalidRequest, match="http"):
        HttpClient("localhost:8000")


def test_a_closed_client_says_so():
    client = HttpClient(f"http://127.0.0.1:{free_port()}")
    client.close()
    client.close()
    with pytest.raises(EngineUnavailable, match="closed"):
        client.submit(ask())
    with pytest.raises(EngineUnavailable, match="closed"):
        client.price((1,)).result()


def test_a_server_that_is_back_wakes_a_client_that_nobody_reads(join, engine):
    now = [0.0]
    client = join(f"http://127.0.0.1:{free_port()}", clock=lambda: now[0])
    wait_until(lambda: client.snapshot().state is EngineState.FAILED)
    now[0] += 1000.0
    woken = []
    client.on_wake(lambda: woken.append(client._poller._snapshot.state))
    port = int(client._connection.url.rpartition(":")[2])
    with live(engine, port=port):
        wait_until(lambda: woken == [EngineState.LOADING, EngineState.READY])


def test_a_client_that_nobody_reads_does_not_poll_between_its_rare_looks(join, engine, monkeypatch):
    monkeypatch.setattr(http_polling, "IDLE_POLL_S", 600.0)
    with live(engine) as server:
        clock = [0.0]
        client = join(server.url, clock=lambda: clock[0])
        wait_until(lambda: client.snapshot().state is EngineState.READY)
        clock[0] += 60.0  # no request for a minute

        def polls():
            text = server.context.counters.render().decode()
            return [line for line in text.splitlines() if 'route="/snapshot"' in line]

        wait_until(lambda: not client._poller._wanted.is_set())
        before = polls()
        client.price((1,)).result(30)  # the connection itself works
        assert polls() == before


def test_a_client_that_nobody_reads_is_woken_by_the_work_of_another(join, engine, monkeypatch):
    monkeypatch.setattr(http_polling, "IDLE_POLL_S", 0.05)
    with live(engine) as server:
        now = [0.0]
        idle, busy = join(server.url, clock=lambda: now[0]), join(server.url)
        wait_until(lambda: idle.snapshot().state is EngineState.READY)
        wait_until(lambda: busy.snapshot().state is EngineState.READY)
        now[0] += 60.0  # nothing has read for a minute
        wait_until(lambda: not idle._poller._wanted.is_set())
        woken = []
        before = engine.snapshot().step
        idle.on_wake(lambda: woken.append(idle._poller._snapshot.step))
        drain_all(busy, busy.submit(ask()))
        wait_until(lambda: max(woken, default=before) > before)


def test_what_is_read_after_a_pause_is_fetched_and_wakes_the_reader(join, engine, monkeypatch):
    monkeypatch.setattr(http_polling, "IDLE_POLL_S", 600.0)
    with live(engine) as server:
        now = [0.0]
        client = join(server.url, clock=lambda: now[0])
        wait_until(lambda: client.snapshot().state is EngineState.READY)
        now[0] += 60.0
        wait_until(lambda: not client._poller._wanted.is_set())
        woken = []
        client.on_wake(lambda: woken.append(client._poller.blocks.since(-1)))
        client.blocks(-1)
        wait_until(lambda: any(blocks is not None for blocks in woken))
