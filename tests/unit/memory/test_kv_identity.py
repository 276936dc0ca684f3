"""Whatever could change KV bytes changes the salt (7)."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from engine.memory.kv_identity import kv_salt
from engine.models.spec import Rope
from tests.fakes.toy_engine import toy_config
from tests.fakes.toy_executor import toy_spec


def model(path, **changes):
    facts = {
        "spec": toy_spec(),
        "weight_format": "Q4_1",
        "parameters": 250,
        "paths": (path,),
        "tokenizer": SimpleNamespace(fingerprint="toy"),
        "images": None,
    }
    return SimpleNamespace(**facts | changes)


@pytest.fixture
def weights(tmp_path):
    path = tmp_path / "model.gguf"
    path.write_bytes(b"weights")
    return path


def test_equal_facts_give_equal_salts(weights):
    assert kv_salt(model(weights), toy_config()) == kv_salt(model(weights), toy_config())


@pytest.mark.parametrize(
    "changes",
    [
        {"spec": replace(toy_spec(), ropes=(Rope(5e5, 4, "half"),))},
        {"spec": replace(toy_spec(), layers=toy_spec().layers[:1])},
        {"weight_format": "Q8_0"},
        {"parameters": 251},
        {"tokenizer": SimpleNamespace(fingerprint="other")},
        {"images": SimpleNamespace(fingerprint="other")},
    ],
)
def test_another_model_has_another_salt(weights, changes):
    other = kv_salt(model(weights, **changes), toy_config())
    assert other != kv_salt(model(weights), toy_config())


@pytest.mark.parametrize("changes", [{"weights": "q4"}, {"kv_dtype": "f32"}, {"dispatch": "avx2"}])
def test_another_setting_has_another_salt(weights, changes):
    other = kv_salt(model(weights), toy_config(**changes))
    assert other != kv_salt(model(weights), toy_config())


def test_other_weights_under_the_same_name_have_another_salt(weights):
    before = kv_salt(model(weights), toy_config())
    weights.write_bytes(b"other weights")
    assert kv_salt(model(weights), toy_config()) != before
