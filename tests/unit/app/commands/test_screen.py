"""What the screen's command reads before it opens."""

import pytest

from app.commands.screen import with_chosen_model
from app.settings.options import DEMO_MODEL
from app.settings.preferences import Preferences
from app.settings.settings import Settings


@pytest.fixture
def preferences(tmp_path):
    return Preferences(tmp_path / "preferences.json")


def test_the_model_chosen_last_is_loaded_at_the_next_start(preferences):
    assert with_chosen_model(Settings(), preferences).model == DEMO_MODEL
    preferences.set("model", "qwen3")
    assert with_chosen_model(Settings(), preferences).model == "qwen3"


def test_a_named_model_and_a_server_have_precedence(preferences):
    preferences.set("model", "qwen3")
    assert with_chosen_model(Settings(model=DEMO_MODEL), preferences).model == DEMO_MODEL
    attached = Settings(attach="http://127.0.0.1:8000")
    assert with_chosen_model(attached, preferences) is attached
