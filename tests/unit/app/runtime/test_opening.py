"""From settings to an engine and a session."""

import os

import pytest

from app.runtime.opening import (
    engine_config,
    find_model,
    open_client,
    open_screen_client,
    open_session,
    wait_loaded,
)
from app.settings.options import MIB
from app.settings.settings import Settings
from engine.api.errors import EngineUnavailable, ModelError, ModelNotFound
from engine.api.snapshot import EngineState
from engine.models.store import ModelStore
from tests.fakes.chat_toys import ToyClient
from tests.fakes.tiny_gguf import write_tiny_gguf
from tests.server.byte_engine import wait_until


def test_a_flag_stands_above_the_kernels_own_variable(demo_model, monkeypatch):
    monkeypatch.setenv("PRAVAHA_DISPATCH", "portable")
    config = engine_config(Settings(model=str(demo_model), dispatch="avx2"))
    assert config.dispatch == "avx2"
    assert "PRAVAHA_DISPATCH" not in os.environ


def test_a_draft_model_is_found_like_the_model(demo_model, tmp_path):
    model = str(demo_model)
    assert engine_config(Settings(model=model, draft_model=model)).draft_model == demo_model
    for none in ("none", ""):
        assert engine_config(Settings(model=model, draft_model=none)).draft_model is None
    assert engine_config(Settings(model=model)).draft_model is None
    with pytest.raises(ModelNotFound, match="nowhere"):
        engine_config(Settings(model=model, draft_model="nowhere", cache_dir=tmp_path))


def test_a_model_is_refused_while_its_draft_model_is_missing(tmp_path, demo_model):
    settings = Settings(
        model=str(demo_model),
        draft_model="nowhere",
        cache_dir=tmp_path,
        kv_cache=16 * MIB,
        ctx=256,
    )
    ModelStore(settings.models, check=lambda path: None).add(str(demo_model), name="demo")
    with open_client(settings, model_required=False) as opened:
        opened.start()
        with pytest.raises(EngineUnavailable, match="No model 'nowhere' is installed"):
            wait_loaded(opened.client)
        with pytest.raises(ModelError, match="nowhere"):
            opened.client.load_model("demo")


def test_only_the_demo_model_is_fetched_unasked(tmp_path):
    with pytest.raises(ModelNotFound, match="nowhere"):
        find_model(Settings(model="nowhere", cache_dir=tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_a_screen_opens_without_a_model_and_can_load_one(tmp_path, demo_model):
    settings = Settings(model="nowhere", cache_dir=tmp_path, kv_cache=16 * MIB, ctx=256)
    with pytest.raises(ModelNotFound, match="nowhere"), open_client(settings):
        pass
    ModelStore(settings.models, check=lambda path: None).add(str(demo_model), name="demo")
    with open_client(settings, model_required=False) as opened:
        opened.start()
        with pytest.raises(EngineUnavailable, match="No model 'nowhere' is installed"):
            wait_loaded(opened.client)
        opened.client.load_model("demo")
        assert wait_loaded(opened.client).model.name == "demo"


def test_a_screen_of_several_models_opens_them_all_and_follows_the_branch(tmp_path):
    one, other = tmp_path / "one.gguf", tmp_path / "other.gguf"
    write_tiny_gguf(one)
    write_tiny_gguf(other)
    settings = Settings(
        model=str(one), further_models=(str(other),), cache_dir=tmp_path, data_dir=tmp_path / "data",
        kv_cache=16 * MIB, ctx=64,
    )  # fmt: skip
    with open_screen_client(settings) as opened:
        assert opened.models.primary == "one"
        assert opened.client.snapshot().state is EngineState.UNLOADED
        opened.start()
        for name in ("one", "other"):
            wait_until(lambda name=name: not opened.models.awaits(name))
        with open_session(settings, opened.client, resume=False, models=opened.models) as session:
            assert opened.client.snapshot().model.name == "one"
            session.model.choose("other")
            assert opened.client.snapshot().model.name == "other"


def test_a_screen_of_one_model_has_one_engine(tmp_path):
    with open_screen_client(Settings(model="nowhere", cache_dir=tmp_path)) as opened:
        assert opened.models is None
        assert opened.served is None


def test_several_models_need_to_be_there(tmp_path):
    settings = Settings(model="nowhere", further_models=("neither",), cache_dir=tmp_path)
    with pytest.raises(ModelNotFound, match="nowhere"), open_screen_client(settings):
        pass


def test_a_server_that_does_not_answer_is_attached_to_as_one_of_one_model(tmp_path):
    settings = Settings(attach="http://127.0.0.1:9", cache_dir=tmp_path)
    with open_screen_client(settings) as opened:
        assert opened.models is None
        assert opened.engine is None


def test_a_session_is_saved_and_its_store_closed_even_after_an_error(tmp_path):
    settings, client = Settings(data_dir=tmp_path), ToyClient()

    def fail_in_mid_answer():
        with open_session(settings, client, resume=True) as session:
            session.messages.send("hello")
            client.write("half")
            raise RuntimeError("the screen failed")

    with pytest.raises(RuntimeError):
        fail_in_mid_answer()
    assert list((tmp_path / "conversations.db.writers").iterdir()) == []
    with open_session(settings, client, resume=True) as again:
        assert [view.text for view in again.path()][-2:] == ["hello", "half"]


def test_waiting_for_a_model_that_cannot_be_loaded_ends(tmp_path):
    with pytest.raises(EngineUnavailable):
        wait_loaded(ToyClient(state=EngineState.FAILED))


def test_an_engine_without_a_model_is_not_ready():
    with pytest.raises(EngineUnavailable, match="No model is loaded"):
        wait_loaded(ToyClient(state=EngineState.UNLOADED))


def test_a_change_of_the_model_is_waited_for(monkeypatch):
    client = ToyClient(state=EngineState.DRAINING)
    client.next_model = "other"

    def changed(seconds):
        client.next_model, client.state = None, EngineState.READY

    monkeypatch.setattr("app.runtime.opening.time.sleep", changed)
    assert wait_loaded(client).state is EngineState.READY
