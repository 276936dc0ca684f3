"""`load_model` and `unload_model`: requests in flight, memory, failures, and what stays."""

import threading
from dataclasses import replace

import pytest

from engine.api.errors import (
    EngineUnavailable,
    InvalidRequest,
    ModelError,
    ModelNotFound,
)
from engine.api.events import EngineStateChanged
from engine.api.request import FinishReason
from engine.api.snapshot import EngineState
from engine.models.spec import Rope
from engine.models.store import ModelStore
from engine.runtime.loading import memory_after_unloading, open_with_headers
from engine.runtime.model_change import MAX_CHANGE_DRAIN_S
from tests.fakes.toy_engine import ask, toy_config, toy_engine
from tests.fakes.toy_executor import ToyExecutor, oracle, toy_model, toy_spec

PATIENCE_S = 30  # for threads to get there; a test that needs it has failed


class Loader:
    """Loads a new toy executor for each model; each load can be made to fail or to wait."""

    def __init__(self):
        self.executors = []
        self.alive_at_load = []  # executors that were not closed when another was created
        self.fail_with = None
        self.gate = None
        self.progress = []  # values to report; the gate is passed after each

    def __call__(self, model, config, *, num_blocks, max_model_len, progress):
        self.alive_at_load.append(sum(not one.closed for one in self.executors))
        for share in self.progress:
            progress(share)
            if self.gate is not None:
                assert self.gate.acquire(timeout=PATIENCE_S)
                progress(share)
        if self.fail_with is not None:
            raise self.fail_with
        executor = ToyExecutor(num_blocks, config.block_size)
        self.executors.append(executor)
        return executor


@pytest.fixture
def files(tmp_path):
    """Paths of three models; the name of the file is the model's."""
    for name in ("first", "second", "wide"):
        (tmp_path / f"{name}.gguf").write_bytes(b"")
    return tmp_path


@pytest.fixture
def loader():
    return Loader()


@pytest.fixture
def engine(files, loader):
    def opener(config):
        if config.model.suffix == ".broken":
            raise ModelError("The file is damaged.")
        model = toy_model(64 if config.name == "second" else 256)
        model.name = config.name
        return model

    config = replace(toy_config(), model=files / "first.gguf", name="first")
    engine, _ = toy_engine(
        config,
        executor_factory=loader,
        model_opener=opener,
        models=ModelStore(files / "store"),
    )
    engine.start()
    engine.wait_ready(PATIENCE_S)
    yield engine
    for executor in loader.executors:
        if executor.gate is not None:
            executor.gate.release(10**4)
    engine.shutdown()


def answer(engine, prompt="hello", **params):
    return engine.submit(ask(prompt, **params)).wait_result(PATIENCE_S)


def test_another_model_is_loaded_and_answers(engine, files, loader):
    assert answer(engine).token_ids == oracle(ask())
    engine.load_model(files / "second.gguf")
    engine.wait_ready(PATIENCE_S)
    snapshot = engine.snapshot()
    assert snapshot.state is EngineState.READY
    assert snapshot.model.name == engine.config.name == "second"
    assert snapshot.model.context_length == 64
    assert snapshot.next_model is None
    assert answer(engine).token_ids == oracle(ask())
    engine.load_model(files / "first.gguf")
    engine.wait_ready(PATIENCE_S)
    assert engine.snapshot().model.context_length == 256
    assert len(loader.executors) == 3


def test_the_old_weights_are_freed_before_the_new_ones_are_loaded(engine, files, loader):
    engine.load_model(files / "second.gguf")
    engine.wait_ready(PATIENCE_S)
    assert loader.alive_at_load == [0, 0]
    assert [one.closed for one in loader.executors] == [True, False]


def test_the_states_of_a_change_are_published_in_order(engine, files):
    states = []
    engine.events.subscribe(EngineStateChanged, lambda event: states.append(event.state))
    engine.load_model(files / "second.gguf")
    engine.wait_ready(PATIENCE_S)
    assert states == [EngineState.DRAINING, EngineState.LOADING, EngineState.READY]


def test_progress_and_the_next_models_name_are_in_the_snapshot(engine, files, loader):
    loader.gate = threading.Semaphore(0)
    loader.progress = [0.25, 0.5]
    seen, arrived = [], threading.Event()

    def note():
        snapshot = engine.snapshot()
        seen.append((snapshot.state, snapshot.next_model, snapshot.loading_progress))
        if snapshot.loading_progress == 0.25:
            arrived.set()

    engine.on_wake(note)
    engine.load_model(files / "second.gguf")
    assert arrived.wait(PATIENCE_S)
    assert engine.snapshot().model is None
    loader.gate.release(2)
    engine.wait_ready(PATIENCE_S)
    assert (EngineState.LOADING, "second", 0.25) in seen
    assert (EngineState.LOADING, "second", 0.5) in seen


def test_running_requests_finish_first_and_new_ones_are_refused(engine, files, loader):
    executor = loader.executors[0]
    executor.gate = threading.Semaphore(0)
    running = engine.submit(ask(max_tokens=8))
    assert executor.entered.acquire(timeout=PATIENCE_S)
    engine.load_model(files / "second.gguf")
    with pytest.raises(EngineUnavailable, match="changing its model to second"):
        engine.submit(ask())
    executor.gate.release(100)
    result = running.wait_result(PATIENCE_S)
    assert result.finish_reason is FinishReason.LENGTH
    assert result.token_ids == oracle(ask(max_tokens=8))
    engine.wait_ready(PATIENCE_S)
    assert engine.snapshot().model.name == "second"


def test_requests_that_do_not_finish_in_time_fail_with_the_reason(engine, files, loader):
    executor = loader.executors[0]
    executor.gate = threading.Semaphore(0)
    running = engine.submit(ask(max_tokens=200))
    assert executor.entered.acquire(timeout=PATIENCE_S)
    engine.load_model(files / "second.gguf", drain_s=0)
    executor.gate.release(100)
    result = running.wait_result(PATIENCE_S)
    assert result.finish_reason is FinishReason.ERROR
    assert result.error == "The model was changed to second before the answer was complete."
    engine.wait_ready(PATIENCE_S)


def test_a_second_call_ends_the_wait_at_once(engine, files, loader):
    executor = loader.executors[0]
    executor.gate = threading.Semaphore(0)
    running = engine.submit(ask(max_tokens=200))
    assert executor.entered.acquire(timeout=PATIENCE_S)
    engine.load_model(files / "second.gguf", drain_s=MAX_CHANGE_DRAIN_S)
    with pytest.raises(EngineUnavailable, match="second"):
        engine.load_model(files / "wide.gguf")
    engine.load_model(files / "second.gguf", drain_s=0)
    executor.gate.release(20)
    assert running.wait_result(PATIENCE_S).finish_reason is FinishReason.ERROR
    engine.wait_ready(PATIENCE_S)
    assert engine.snapshot().model.name == "second"


def test_a_model_that_does_not_fit_is_refused_before_anything_is_unloaded(
    engine, files, loader, monkeypatch
):
    monkeypatch.setattr("engine.runtime.loading.available_memory", lambda: 1)
    monkeypatch.setattr("engine.runtime.loading.resident_anonymous_memory", lambda: 0)
    with pytest.raises(ModelError, match="second does not fit in memory"):
        engine.load_model(files / "second.gguf")
    assert engine.snapshot().state is EngineState.READY
    assert not loader.executors[0].closed
    assert answer(engine).token_ids == oracle(ask())


def test_the_memory_that_the_old_model_gives_back_counts_as_free(monkeypatch):
    loaded = open_with_headers(toy_config(), lambda _: toy_model())
    held = loaded.memory.weight_bytes + loaded.memory.work_bytes + loaded.kv_cache.pool_bytes
    monkeypatch.setattr("engine.runtime.loading.available_memory", lambda: 10)
    for resident, given_back in ((0, 0), (held - 1, held - 1), (10 * held, held)):
        monkeypatch.setattr(
            "engine.runtime.loading.resident_anonymous_memory", lambda bytes_=resident: bytes_
        )
        assert memory_after_unloading(loaded.model, toy_config(), loaded) == 10 + given_back
    assert memory_after_unloading(loaded.model, toy_config(), None) == 10


@pytest.mark.parametrize(
    ("name", "error"),
    [("nobody", ModelNotFound), ("bad.broken", ModelError), ("first.gguf", InvalidRequest)],
)
def test_an_unusable_missing_or_loaded_model_changes_nothing(engine, files, name, error):
    (files / "bad.broken").write_bytes(b"")
    with pytest.raises(error):
        engine.load_model(files / name)
    assert engine.snapshot().state is EngineState.READY
    assert answer(engine).finish_reason is FinishReason.LENGTH


def test_a_load_that_fails_leaves_the_engine_without_a_model_and_with_the_reason(
    engine, files, loader
):
    loader.fail_with = ModelError("The weights are damaged.")
    engine.load_model(files / "second.gguf")
    with pytest.raises(EngineUnavailable, match="second could not be loaded: The weights are"):
        engine.wait_ready(PATIENCE_S)
    snapshot = engine.snapshot()
    assert snapshot.state is EngineState.UNLOADED
    assert snapshot.last_error == "second could not be loaded: The weights are damaged."
    assert snapshot.model is None
    assert snapshot.next_model is None
    assert snapshot.blocks.total == 0
    with pytest.raises(EngineUnavailable, match="could not be loaded"):
        engine.submit(ask())
    loader.fail_with = None
    engine.load_model(files / "first.gguf")
    engine.wait_ready(PATIENCE_S)
    assert engine.snapshot().last_error is None
    assert answer(engine).token_ids == oracle(ask())


@pytest.mark.parametrize("reason", ["The file is damaged.", None])
def test_after_a_first_load_that_fails_another_model_can_be_loaded(files, loader, reason):
    def open_model(config):
        if config.name == "toy":
            raise ModelError("The file is damaged.") if reason else RuntimeError("a defect")
        return toy_model()

    engine, _ = toy_engine(
        model_opener=open_model, executor_factory=loader, models=ModelStore(files / "store")
    )
    engine.start()
    with pytest.raises(EngineUnavailable, match="toy could not be loaded: "):
        engine.wait_ready(PATIENCE_S)
    engine.load_model(files / "second.gguf")
    engine.wait_ready(PATIENCE_S)
    assert engine.snapshot().model.name == "second"
    assert answer(engine).token_ids == oracle(ask())
    engine.shutdown()


def test_a_change_is_in_the_snapshot_as_soon_as_it_was_asked_for(engine, files, monkeypatch):
    monkeypatch.setattr(engine._thread, "send", lambda command: None)  # the thread is busy
    engine.load_model(files / "second.gguf")
    snapshot = engine.snapshot()
    assert (snapshot.state, snapshot.next_model) == (EngineState.DRAINING, "second")
    monkeypatch.undo()


def test_an_engine_started_without_a_model_says_why_and_takes_one(files, loader):
    engine, _ = toy_engine(executor_factory=loader, models=ModelStore(files / "store"))
    engine.start(without_model="No model 'x' is installed.")
    with pytest.raises(EngineUnavailable, match="No model 'x' is installed"):
        engine.wait_ready(PATIENCE_S)
    assert loader.executors == []
    engine.load_model(files / "second.gguf")
    engine.wait_ready(PATIENCE_S)
    assert answer(engine).token_ids == oracle(ask())
    engine.shutdown()


def test_requests_that_were_queued_during_a_load_fail_with_it(engine, files, loader):
    loader.gate = threading.Semaphore(0)
    loader.progress = [0.5]
    loader.fail_with = ModelError("The weights are damaged.")
    loading = threading.Event()
    engine.on_wake(lambda: loading.set() if engine.snapshot().loading_progress == 0.5 else None)
    engine.load_model(files / "second.gguf")
    assert loading.wait(PATIENCE_S)
    queued = engine.submit(ask())
    loader.gate.release(10)
    result = queued.wait_result(PATIENCE_S)
    assert result.finish_reason is FinishReason.ERROR
    assert "could not be loaded" in result.error


def test_a_request_that_was_prepared_for_the_old_model_is_refused(engine, files, monkeypatch):
    """Its token ids mean something else to the new one."""
    from engine.runtime import engine as module

    make = module.make_sequence

    def slow(*args, **options):
        made = make(*args, **options)
        engine.load_model(files / "second.gguf")
        engine.wait_ready(PATIENCE_S)
        return made

    monkeypatch.setattr(module, "make_sequence", slow)
    with pytest.raises(EngineUnavailable, match="changed while the request was prepared"):
        engine.submit(ask())


def test_readers_of_steps_and_blocks_go_on_with_the_next_model(engine, files):
    answer(engine)
    seen = engine.recent_steps(0)[-1].number
    epoch = engine.blocks(-1).epoch
    engine.load_model(files / "second.gguf")
    engine.wait_ready(PATIENCE_S)
    assert engine.recent_steps(seen) == ()
    answer(engine)
    assert engine.recent_steps(seen)[0].number == seen + 1
    later = engine.blocks(epoch)
    while later is None:
        later = engine.blocks(epoch)
    assert later.epoch > epoch
    assert engine.residency(ask().prompt_ids).tokens == 5


def test_unloading_frees_the_model_and_another_can_be_loaded(engine, files, loader):
    engine.unload_model()
    with pytest.raises(EngineUnavailable, match="No model is loaded"):
        engine.wait_ready(PATIENCE_S)
    assert loader.executors[0].closed
    assert engine.snapshot().state is EngineState.UNLOADED
    with pytest.raises(EngineUnavailable):
        engine.tokenizer  # noqa: B018
    with pytest.raises(EngineUnavailable):
        engine.unload_model()
    engine.load_model(files / "second.gguf")
    engine.wait_ready(PATIENCE_S)
    assert answer(engine).token_ids == oracle(ask())


def test_a_shutdown_while_requests_keep_the_old_model_drops_the_change(engine, files, loader):
    executor = loader.executors[0]
    executor.gate = threading.Semaphore(0)
    running = engine.submit(ask(max_tokens=200))
    assert executor.entered.acquire(timeout=PATIENCE_S)
    engine.load_model(files / "second.gguf")
    executor.gate.release(10**4)
    engine.shutdown()
    assert running.wait_result(PATIENCE_S).finish_reason in (
        FinishReason.ABORT,
        FinishReason.LENGTH,
    )
    assert engine.snapshot().state is EngineState.STOPPED
    assert all(one.closed for one in loader.executors)


def test_a_shutdown_stops_a_load(engine, files, loader):
    loader.gate = threading.Semaphore(0)
    loader.progress = [0.5] * 10
    loading = threading.Event()
    engine.on_wake(lambda: loading.set() if engine.snapshot().loading_progress == 0.5 else None)
    engine.load_model(files / "second.gguf")
    assert loading.wait(PATIENCE_S)
    loader.gate.release(100)
    engine.shutdown()
    assert engine.snapshot().state is EngineState.STOPPED
    with pytest.raises(EngineUnavailable):
        engine.load_model(files / "first.gguf")


def test_each_model_has_its_own_prefix_cache_and_swap_file(files, loader):
    config = replace(
        toy_config(swap_bytes=1 << 20, swap_dir=files / "swap"),
        model=files / "first.gguf",
        name="first",
    )
    (files / "swap").mkdir()

    def opener(config):
        model = toy_model()
        if config.name == "second":
            model.spec = replace(toy_spec(), ropes=(Rope(5e5, 4, "half"),))
        return model

    engine, _ = toy_engine(
        config, executor_factory=loader, model_opener=opener, models=ModelStore(files / "store")
    )
    engine.start()
    engine.wait_ready(PATIENCE_S)
    prompt = [(1 + i) % 90 for i in range(50)]
    answer(engine, prompt)
    engine.load_model(files / "second.gguf")
    engine.wait_ready(PATIENCE_S)
    assert answer(engine, prompt).cached_tokens == 0
    engine.load_model(files / "first.gguf")
    engine.wait_ready(PATIENCE_S)
    again = answer(engine, prompt)
    engine.shutdown()
    assert again.cached_tokens == 48  # from the swap file, which was closed in good order
    assert again.token_ids == oracle(ask(prompt))
    assert len(list((files / "swap").glob("*.swap"))) == 2


@pytest.mark.parametrize("seconds", [-1, MAX_CHANGE_DRAIN_S + 1, "soon", True, float("nan")])
def test_an_invalid_wait_is_refused(engine, files, seconds):
    with pytest.raises(InvalidRequest, match="drain_seconds"):
        engine.load_model(files / "second.gguf", drain_s=seconds)


def test_the_installed_models_are_listed_with_what_a_choice_needs(files, loader, monkeypatch):
    store = ModelStore(files / "store", check=lambda path: None)
    for name in ("first", "second"):
        store.add(str(files / f"{name}.gguf"))

    def opener(config):
        if config.name == "second":
            raise ModelError("The file is damaged.")
        return toy_model()

    installed = store.get("first")
    engine, _ = toy_engine(
        replace(toy_config(), model=installed.path, name="first"),
        executor_factory=loader,
        model_opener=opener,
        models=store,
    )
    engine.start()
    engine.wait_ready(PATIENCE_S)
    first, second = engine.models()
    engine.shutdown()
    assert (first.name, first.loaded, first.fits, first.parameters) == ("first", True, True, 250)
    assert (second.loaded, second.fits, second.problem) == (False, False, "The file is damaged.")


def test_metrics_carry_the_name_of_the_model_that_is_loaded(engine, files):
    assert b'model_name="first"' in engine.metrics.render()
    engine.load_model(files / "second.gguf")
    engine.wait_ready(PATIENCE_S)
    assert b'model_name="second"' in engine.metrics.render()
    assert b'model_name="first"' not in engine.metrics.render()


def test_random_changes_and_requests_leave_nothing_behind(engine, files, loader):
    """Each request ends in a defined way, and every executor but the last is closed."""
    import random

    chance = random.Random(11)
    for _ in range(40):
        handles = [
            engine.submit(ask(max_tokens=chance.randrange(1, 40)))
            for _ in range(chance.randrange(4))
        ]
        names = [one for one in ("first", "second", "wide") if one != engine.config.name]
        engine.load_model(files / f"{chance.choice(names)}.gguf", drain_s=chance.choice([0, 30]))
        for handle in handles:
            result = handle.wait_result(PATIENCE_S)
            assert result.finish_reason in (FinishReason.LENGTH, FinishReason.ERROR)
        engine.wait_ready(PATIENCE_S)
        blocks = engine.snapshot().blocks
        assert blocks.active == 0
        assert blocks.total == 64
    assert sum(not one.closed for one in loader.executors) == 1
