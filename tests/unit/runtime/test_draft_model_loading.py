"""An engine loads its draft model with the model, changes it with the model, and closes both."""

from dataclasses import replace
from pathlib import Path

import pytest

from engine.api.errors import EngineUnavailable, ModelError
from engine.models.store import ModelStore
from tests.fakes.toy_engine import ask, toy_config, toy_engine
from tests.fakes.toy_executor import ToyExecutor, oracle, toy_model

PATIENCE_S = 30


class Loader:
    """Loads a toy executor per model, and remembers it by the model's name."""

    def __init__(self):
        self.executors = {}
        self.fail_draft = False

    def __call__(self, model, config, *, num_blocks, max_model_len, progress):
        if self.fail_draft and model.name == "small":
            raise ModelError("The file is damaged.")
        executor = ToyExecutor(num_blocks, config.block_size)
        self.executors.setdefault(model.name, []).append(executor)
        return executor


@pytest.fixture
def loader():
    return Loader()


@pytest.fixture
def engine(tmp_path, loader):
    for name in ("first", "second", "wide"):
        (tmp_path / f"{name}.gguf").write_bytes(b"")

    def opener(config):
        model = toy_model()
        model.name = config.name
        if config.name == "wide":
            model.spec = replace(model.spec, vocab_size=100)
        return model

    config = replace(
        toy_config(),
        model=tmp_path / "first.gguf",
        name="first",
        draft_model=Path("small.gguf"),
    )
    engine, _ = toy_engine(
        config, executor_factory=loader, model_opener=opener, models=ModelStore(tmp_path / "store")
    )
    yield engine
    engine.shutdown()


def test_both_models_are_loaded_changed_and_closed_together(engine, loader, tmp_path):
    engine.start()
    engine.wait_ready(PATIENCE_S)
    assert engine.snapshot().model.draft_model == "small"
    engine.load_model(tmp_path / "second.gguf")
    engine.wait_ready(PATIENCE_S)
    assert engine.snapshot().model.name == "second"
    assert [one.closed for one in loader.executors["small"]] == [True, False]
    request = ask(max_tokens=8)
    assert engine.submit(request).wait_result(PATIENCE_S).token_ids == oracle(request)
    engine.shutdown()
    assert all(one.closed for kept in loader.executors.values() for one in kept)


def test_a_model_with_another_vocabulary_is_refused_and_the_loaded_one_stays(engine, tmp_path):
    engine.start()
    engine.wait_ready(PATIENCE_S)
    with pytest.raises(ModelError, match="small cannot draft for wide"):
        engine.load_model(tmp_path / "wide.gguf")
    assert engine.submit(ask(max_tokens=3)).wait_result(PATIENCE_S).token_ids


def test_a_draft_model_that_cannot_be_loaded_is_an_error_and_frees_the_model(engine, loader):
    loader.fail_draft = True
    engine.start()
    with pytest.raises(EngineUnavailable, match="The file is damaged"):
        engine.wait_ready(PATIENCE_S)
    assert [one.closed for one in loader.executors["first"]] == [True]
