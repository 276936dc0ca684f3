"""`ServedModels`: several engines, loads on demand, room for them, idle models, reloads, shares of memory."""

import threading
from contextlib import contextmanager
from dataclasses import replace

import pytest

from engine.api.errors import (
    EngineUnavailable,
    ModelDoesNotFit,
    ModelError,
    ModelNotFound,
)
from engine.api.keep_alive import FOR_EVER
from engine.api.request import FinishReason
from engine.api.snapshot import EngineState
from engine.runtime.served_model import ModelLoading
from engine.runtime.served_models import ServedModels
from tests.fakes.toy_engine import ask
from tests.fakes.toy_models import PATIENCE_S, ToyModels
from tests.server.byte_engine import wait_until


@pytest.fixture
def toys(tmp_path):
    return ToyModels(tmp_path)


@contextmanager
def running(models):
    models.start()
    try:
        yield models
    finally:
        models.close()


def loaded(models):
    return sorted(one.name for one in models.all() if one.is_loaded)


def lease_of(models, name, **options):
    """A lease of a model, after the load that it may need; as a request takes it."""
    try:
        return models.use(name, **options)
    except ModelLoading as loading:
        try:
            loading.change.finished.result(PATIENCE_S)
            return models.use(name, **options)
        finally:
            models.release(loading.lease)


def use(models, name, **options):
    models.release(lease_of(models, name, **options))


def threads_named(name):
    return [one for one in threading.enumerate() if one.name == name]


def answer(engine):
    return engine.submit(ask([1, 2, 3], max_tokens=4)).wait_result(PATIENCE_S)


def test_each_model_has_its_own_engine_thread_and_pool(toys):
    configs = [toys.config("first", blocks=64), toys.config("second", blocks=32)]
    before = len(threads_named("pravaha-engine"))
    with running(toys.served(configs=configs)) as models:
        first, second = lease_of(models, "first"), lease_of(models, "second")
        assert first.engine is not second.engine
        assert len(threads_named("pravaha-engine")) == before + 2
        assert first.engine.snapshot().blocks.total == 64
        assert second.engine.snapshot().blocks.total == 32
        answer(first.engine)
        assert first.engine.snapshot().totals.generation_tokens == 4
        assert second.engine.snapshot().totals.generation_tokens == 0
    assert len(threads_named("pravaha-engine")) == before
    assert not threads_named("pravaha-models")


def test_a_name_an_alias_and_no_name_choose_the_model(toys):
    aliases = {"gpt-4o": "second", "default": "first"}
    with running(toys.served("first", "second", aliases=aliases)) as models:
        use(models, "second")
        assert models.find("gpt-4o").name == "second"
        assert models.find(None) is models.find("default") is models.primary
        assert models.aliases_of("second") == ["gpt-4o"]
        with pytest.raises(ModelNotFound, match="no model 'third' here"):
            models.use("third")


@pytest.mark.parametrize(
    ("names", "options", "sentence"),
    [
        (("first", "first"), {}, "Two models are called first"),
        (("first",), {"aliases": {"first": "first"}}, "first cannot be an alias"),
        (("first",), {"aliases": {"x": "third"}}, "stands for third, which is not served"),
    ],
)
def test_ambiguous_names_are_refused(toys, names, options, sentence):
    with pytest.raises(ModelError, match=sentence):
        toys.served(*names, **options)


def test_requests_wait_for_a_model_that_is_being_loaded(tmp_path):
    gate = threading.Semaphore(0)
    toys = ToyModels(tmp_path, load_gates={"second": gate})
    with running(toys.served("first", "second")) as models:
        use(models, "first")
        with pytest.raises(ModelLoading, match="second is being loaded") as loading:
            models.use("second")
        change = loading.value.change
        wait_until(lambda: change.progress == 0.5)
        assert models.snapshot(models.find("second")).state is EngineState.LOADING
        gate.release()
        change.finished.result(PATIENCE_S)
        assert models.use("second").engine is models.find("second").engine


def test_an_installed_model_is_loaded_when_a_request_names_it(toys):
    models = toys.served("first", max_loaded=2, any_installed=True)
    with running(models):
        use(models, "first")
        assert models.names() == ["first", "broken", "second", "third"]
        assert models.find("second") is None
        use(models, "second")
        assert loaded(models) == ["first", "second"]
        assert toys.loads == ["first", "second"]
        with pytest.raises(ModelNotFound):
            models.use("nobody")
        with pytest.raises(ModelNotFound):  # a client must not choose files
            models.use(str(toys.store.get("third").path))


def test_the_least_recently_used_idle_model_makes_room(toys):
    now = [0.0]
    models = toys.served("first", max_loaded=2, any_installed=True, clock=lambda: now[0])
    with running(models):
        for name in ("first", "second", "first", "third"):
            now[0] += 1
            use(models, name)
        assert loaded(models) == ["first", "third"]
        now[0] += 1
        use(models, "second")  # loaded again when it is asked for
        assert loaded(models) == ["second", "third"]
    assert toys.loads == ["first", "second", "third", "second"]


def test_a_model_in_use_is_not_unloaded_and_the_load_waits_for_it(toys):
    with running(toys.served("first", max_loaded=1, any_installed=True)) as models:
        first = lease_of(models, "first")
        with pytest.raises(ModelLoading) as loading:
            models.use("second")
        with pytest.raises(TimeoutError):
            loading.value.change.finished.result(0.3)
        assert loaded(models) == ["first"]
        models.release(first)
        loading.value.change.finished.result(PATIENCE_S)
        assert loaded(models) == ["second"]
        models.release(loading.value.lease)


def test_a_running_request_without_a_lease_keeps_its_model(tmp_path):
    gate = threading.Semaphore(0)
    toys = ToyModels(tmp_path, gates={"first": gate})
    with running(toys.served("first", max_loaded=1, any_installed=True)) as models:
        lease = lease_of(models, "first")
        handle = lease.engine.submit(ask([1, 2, 3], max_tokens=4))
        models.release(lease)  # such as of a resumable stream whose client was disconnected
        with pytest.raises(ModelLoading) as loading:
            models.use("second")
        with pytest.raises(TimeoutError):
            loading.value.change.finished.result(0.3)
        gate.release(100)
        loading.value.change.finished.result(PATIENCE_S)
        assert handle.wait_result(PATIENCE_S).finish_reason is FinishReason.LENGTH


def test_two_requests_that_need_the_same_place_both_get_their_models(toys):
    """A model that was loaded for a request is not unloaded before the request has used it."""
    with running(toys.served("first", max_loaded=1, any_installed=True)) as models:
        use(models, "first")
        got = []

        def ask_for(name):
            for _ in range(5):
                lease = lease_of(models, name)
                got.append((name, lease.engine.config.name))
                models.release(lease)

        askers = [threading.Thread(target=ask_for, args=(name,)) for name in ("second", "third")]
        for one in askers:
            one.start()
        for one in askers:
            one.join(PATIENCE_S)
        assert len(got) == 10
        assert all(asked == given for asked, given in got)


def test_a_load_that_nobody_waits_for_any_more_is_dropped(toys):
    with running(toys.served("first", max_loaded=1, any_installed=True)) as models:
        first = lease_of(models, "first")
        with pytest.raises(ModelLoading) as loading:
            models.use("second")
        models.release(loading.value.lease)
        with pytest.raises(EngineUnavailable, match="No request waits"):
            loading.value.change.finished.result(PATIENCE_S)
        models.release(first)
        use(models, "first")
        assert toys.loads == ["first"]


@pytest.mark.parametrize("name", ["broken", "failing"])
def test_a_model_that_cannot_be_loaded_leaves_the_others_running(toys, name):
    if name == "failing":
        name = "third"
        toys.failing.add("third")
    with running(toys.served("first", name, "second")) as models:
        with pytest.raises(EngineUnavailable, match=f"{name} could not be loaded: .*damaged"):
            models.wait_started(models.find(name))
        use(models, "first")
        use(models, "second")
        with pytest.raises(ModelLoading) as loading:  # the next request tries again
            models.use(name)
        with pytest.raises((EngineUnavailable, ModelError), match="damaged"):
            loading.value.change.finished.result(PATIENCE_S)
        assert loaded(models) == ["first", "second"]
        assert len(answer(models.find("second").engine).token_ids) == 4


def test_an_idle_model_is_unloaded_after_its_time_and_loaded_again(toys):
    now = [100.0]
    models = toys.served("first", "second", keep_alive_s=60, clock=lambda: now[0])
    with running(models):
        use(models, "first")
        use(models, "second", keep_alive_s=FOR_EVER)
        now[0] += 59
        use(models, "first")  # begins anew
        now[0] += 59
        with models._changed:
            models._changed.notify_all()
        assert loaded(models) == ["first", "second"]
        now[0] += 2
        with models._changed:
            models._changed.notify_all()
        wait_until(lambda: loaded(models) == ["second"])
        use(models, "first")
        assert loaded(models) == ["first", "second"]
    assert toys.loads == ["first", "second", "first"]


def test_a_keep_alive_of_zero_unloads_when_the_last_request_has_finished(toys):
    with running(toys.served("first", "second")) as models:
        one, other = lease_of(models, "second", keep_alive_s=0), lease_of(models, "second")
        models.release(one)
        use(models, "first")
        assert loaded(models) == ["first", "second"]
        models.release(other)
        wait_until(lambda: loaded(models) == ["first"])


def test_a_single_model_that_is_idle_is_unloaded_and_loaded_again_on_demand(toys):
    engine = toys.make(toys.config("first"), lambda model, config: 2**30)
    models = ServedModels.single(engine)
    with running(models):
        engine.wait_ready(PATIENCE_S)
        use(models, "first", keep_alive_s=0)
        wait_until(lambda: engine.snapshot().state is EngineState.UNLOADED)
        use(models, "first", keep_alive_s=FOR_EVER)
        assert engine.snapshot().state is EngineState.READY
        engine.unload_model(drain_s=0)  # asked for: no request may load it again
        wait_until(lambda: engine.snapshot().state is EngineState.UNLOADED)
        assert models.use("first").engine is engine


def test_the_model_of_a_screen_stays_whatever_a_client_asks(toys):
    engine = toys.make(toys.config("first"), lambda model, config: 2**30)
    models = ServedModels.single(engine, may_unload=False)
    with running(models):
        engine.wait_ready(PATIENCE_S)
        use(models, "first", keep_alive_s=0)
        assert not threads_named("pravaha-models")  # nobody who could unload it
        assert engine.snapshot().state is EngineState.READY


def test_a_reload_finishes_the_requests_of_the_old_engine_while_the_new_one_takes_others(tmp_path):
    gate = threading.Semaphore(0)
    toys = ToyModels(tmp_path, gates={"second": gate})
    with running(toys.served("first", "second")) as models:
        lease = lease_of(models, "second")
        old = lease.engine
        running_one = old.submit(ask([1, 2, 3], max_tokens=4))
        prepared = lease_of(models, "second")  # has chosen its engine but not submitted
        toys.gates.clear()
        change = models.reload("second")
        change.finished.result(PATIENCE_S)
        new = models.find("second").engine
        assert new is not old
        assert len(answer(new).token_ids) == 4
        assert old.is_live(running_one.request.request_id)
        assert models.engine_of(running_one.request.request_id) is old
        late = prepared.engine.submit(ask([4, 5], max_tokens=2))
        gate.release(1000)
        for handle, count in ((running_one, 4), (late, 2)):
            assert len(handle.wait_result(PATIENCE_S).token_ids) == count
        models.release(lease)
        models.release(prepared)
        wait_until(lambda: old.snapshot().state is EngineState.STOPPED)
    assert toys.loads == ["first", "second", "second"]


def test_a_reload_that_fails_leaves_the_old_engine_in_place(toys):
    with running(toys.served("first", "second")) as models:
        use(models, "second")
        old = models.find("second").engine
        toys.failing.add("second")
        with pytest.raises(EngineUnavailable, match="damaged"):
            models.reload("second").finished.result(PATIENCE_S)
        assert models.find("second").engine is old
        assert len(answer(old).token_ids) == 4


def test_a_reload_starts_no_engine_once_all_is_closed(toys, monkeypatch):
    with running(toys.served("first", "second")) as models:
        use(models, "second")
        make, made = models._make_engine, []
        closing = threading.Thread(target=models.close)

        def while_closing(*given):
            made.append(make(*given))
            closing.start()
            wait_until(lambda: models._closed)
            return made[0]

        monkeypatch.setattr(models, "_make_engine", while_closing)
        with pytest.raises(EngineUnavailable, match="shut"):
            models.reload("second").finished.result(PATIENCE_S)
        closing.join(PATIENCE_S)
        assert not made[0].started


@pytest.mark.parametrize("name", ["first", "second"])
def test_a_reload_without_room_for_both_lets_requests_wait(tmp_path, name):
    """The primary model, whose engine others hold; and one that does not fit beside itself."""
    gate = threading.Semaphore(0)
    toys = ToyModels(tmp_path, gates={name: gate})
    each = toys.config("first").kv_cache_bytes + 1000
    total = 2 * each if name == "second" else 2**30
    with running(toys.served("first", "second", total_memory=total)) as models:
        use(models, "first")
        lease = lease_of(models, name)
        handle = lease.engine.submit(ask([1, 2, 3], max_tokens=4))
        change = models.reload(name)
        change.accepted.result(PATIENCE_S)
        wait_until(lambda: models.find(name).change is change)
        with pytest.raises(ModelLoading) as loading:
            models.use(name)
        with pytest.raises(EngineUnavailable, match="being changed already"):
            models.reload(name)
        gate.release(1000)
        assert len(handle.wait_result(PATIENCE_S).token_ids) == 4
        models.release(lease)
        change.finished.result(PATIENCE_S)
        assert models.use(name).engine is lease.engine
        models.release(loading.value.lease)
    assert toys.loads == ["first", "second", name]


def test_an_explicit_unload_ends_what_outlasts_its_drain(tmp_path):
    gate = threading.Semaphore(0)
    toys = ToyModels(tmp_path, gates={"second": gate})
    with running(toys.served("first", "second")) as models:
        lease = lease_of(models, "second")
        handle = lease.engine.submit(ask([1, 2, 3], max_tokens=100))
        change = models.unload("second", drain_s=0)
        gate.release(1000)
        change.finished.result(PATIENCE_S)
        assert handle.wait_result(PATIENCE_S).finish_reason is FinishReason.ERROR
        assert loaded(models) == ["first"]
        models.release(lease)
        with pytest.raises(EngineUnavailable, match="not loaded"):
            models.unload("second", drain_s=0)
        use(models, "second")
        assert loaded(models) == ["first", "second"]


def test_shares_that_do_not_fit_together_are_refused_in_one_sentence(toys):
    shares = {"first": 6 * 2**20, "second": 5 * 2**20, "third": 2**20}
    with pytest.raises(ModelDoesNotFit) as refusal:
        toys.served("first", "second", "third", shares=shares, total_memory=10 * 2**20)
    assert str(refusal.value) == (
        "The models' shares of memory (first 6 MiB, second 5 MiB, third 1 MiB) add up to 12 MiB, but "
        "10 MiB are available: lower the shares or free memory."
    )
    # Only those that may be loaded together count.
    toys.served("first", "second", shares=shares, max_loaded=1, total_memory=10 * 2**20)


def test_a_share_is_what_a_model_takes_with_its_pool(toys):
    configs = [replace(toys.config(name), kv_cache_bytes=None) for name in ("first", "second")]
    shares = {"first": 20_000, "second": 40_000}
    with running(toys.served(configs=configs, shares=shares)) as models:
        for name, share in shares.items():
            engine = lease_of(models, name).engine
            blocks = engine.snapshot().blocks
            assert share - blocks.block_bytes < engine.memory_bytes <= share


def test_a_model_larger_than_its_share_is_refused(toys):
    models = toys.served("first", shares={"first": 900})
    with pytest.raises(ModelDoesNotFit, match="first does not fit in its share of memory"):
        models.primary.engine.check_memory_share()


def test_models_together_take_no_more_than_what_was_free(toys):
    """Pools that have not been filled yet are memory that is still free for the machine, but not for us."""
    each = toys.config("first").kv_cache_bytes + 1000
    models = toys.served("first", max_loaded=4, any_installed=True, total_memory=int(2.5 * each))
    with running(models):
        for name in ("first", "second", "third"):
            use(models, name)
        assert loaded(models) == ["second", "third"]  # the count allows all, memory only two
        held = [lease_of(models, name) for name in ("second", "third")]
        with pytest.raises(ModelDoesNotFit, match="first does not fit in memory"):
            models.load("first").finished.result(PATIENCE_S)
        for lease in held:
            models.release(lease)


def test_nothing_is_unloaded_for_a_model_that_would_not_fit_anyway(toys):
    each = toys.config("first").kv_cache_bytes + 1000
    configs = [toys.config("first"), toys.config("second"), toys.config("third", blocks=64 * 4)]
    with running(toys.served(configs=configs, total_memory=3 * each)) as models:
        with pytest.raises(EngineUnavailable, match="third does not fit in memory"):
            models.wait_started(models.find("third"))
        assert loaded(models) == ["first", "second"]


def test_closing_ends_what_waits(tmp_path):
    toys = ToyModels(tmp_path, load_gates={"second": threading.Semaphore(0)})
    models = toys.served("first", "second")
    models.start()
    use(models, "first")
    with pytest.raises(ModelLoading) as loading:
        models.use("second")
    models.close()
    with pytest.raises(EngineUnavailable):
        loading.value.change.finished.result(PATIENCE_S)
    assert all(one.snapshot().state is EngineState.STOPPED for one in toys.engines)
    models.close()


def test_a_request_that_arrives_while_its_model_is_unloaded_waits_for_it(tmp_path):
    gate = threading.Semaphore(0)
    toys = ToyModels(tmp_path, gates={"second": gate})
    with running(toys.served("first", "second")) as models:
        lease = lease_of(models, "second")
        handle = lease.engine.submit(ask([1, 2, 3], max_tokens=2))
        unloading = models.unload("second", drain_s=PATIENCE_S)
        with pytest.raises(ModelLoading) as loading:
            models.use("second")
        assert loading.value.change is not unloading
        gate.release(1000)
        assert len(handle.wait_result(PATIENCE_S).token_ids) == 2
        models.release(lease)
        loading.value.change.finished.result(PATIENCE_S)
        assert loaded(models) == ["first", "second"]


@pytest.mark.parametrize("kind", ["unload", "reload"])
def test_a_load_that_waits_for_room_lets_changes_behind_it_be_made(toys, kind):
    """Else the model of such a change is not idle until it is made, and both wait for each other."""
    with running(toys.served("first", max_loaded=1, any_installed=True)) as models:
        lease = lease_of(models, "first")
        with pytest.raises(ModelLoading) as waiting:
            models.use("second")
        wait_until(lambda: models._current is waiting.value.change)
        if kind == "unload":
            behind = models.unload("first", drain_s=PATIENCE_S)
        else:
            behind = models.reload("first", drain_s=PATIENCE_S)
        models.release(lease)
        behind.finished.result(PATIENCE_S)
        waiting.value.change.finished.result(PATIENCE_S)
        assert loaded(models) == ["second"]
        models.release(waiting.value.lease)


def test_a_reload_of_a_model_that_is_not_loaded_makes_room_for_it(toys):
    with running(toys.served("first", max_loaded=1, any_installed=True)) as models:
        use(models, "second")
        use(models, "first")
        models.reload("second").finished.result(PATIENCE_S)
        assert loaded(models) == ["second"]


def test_who_gives_up_on_a_change_does_not_end_it_for_others(toys):
    with running(toys.served("first", max_loaded=1, any_installed=True)) as models:
        lease = lease_of(models, "first")
        change = models.load("second")
        assert not change.accepted.cancel()
        assert not change.finished.cancel()
        models.release(lease)
        change.finished.result(PATIENCE_S)
        assert loaded(models) == ["second"]
