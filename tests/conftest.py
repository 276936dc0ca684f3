"""Fixtures every part of the suite may use."""

from pathlib import Path

import pytest

from engine.models.demo import SMOLLM2
from engine.models.store import ModelStore


@pytest.fixture(scope="session")
def demo_model() -> Path:
    """The demo model's GGUF file, fetched once into the user's cache."""
    return ModelStore().add(SMOLLM2.name).path
