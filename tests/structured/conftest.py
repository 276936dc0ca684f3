import pytest

from engine.executors.open_model import open_model
from tests.fakes.grammars import toy_compiler
from tests.structured.random_writer import RandomWriter


@pytest.fixture(scope="session")
def writer(demo_model):
    model = open_model(demo_model)
    compiler = toy_compiler(model.tokenizer, model.spec.vocab_size)
    yield RandomWriter(compiler, model.tokenizer, model.spec.vocab_size)
    compiler.close()
