import pytest

from engine.embedding.text_encoder import TextEncoder
from engine.models.demo import MINILM
from engine.models.store import ModelStore


@pytest.fixture(scope="session")
def minilm():
    """The embedding model's directory, fetched once into the user's cache."""
    return ModelStore().add(MINILM.name).path


@pytest.fixture(scope="session")
def encoder(minilm):
    return TextEncoder(minilm, name="minilm")
