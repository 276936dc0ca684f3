"""`pravaha run`: what its options become, without a model."""

import json

import pytest

from app.commands.run import read_schema, run_sampling
from app.settings.settings import Settings
from engine.api.generation_defaults import GenerationDefaults


def test_what_a_schema_says_in_vain_is_named_before_the_answer(tmp_path, capsys):
    path = tmp_path / "tags.json"
    path.write_text(json.dumps({"type": "array", "uniqueItems": True}))
    read_schema(path)
    assert capsys.readouterr().err == f"pravaha: not enforced in {path}: uniqueItems.\n"
    path.write_text(json.dumps({"type": "array"}))
    read_schema(path)
    assert capsys.readouterr().err == ""


def test_stop_strings_reach_the_engine():
    params = run_sampling(
        Settings(), GenerationDefaults(), logprobs=None, grammar=None, stop=["a", "<|im_end|>"]
    )
    assert params.stop == ("a", "<|im_end|>")


@pytest.mark.parametrize(
    ("given", "limit"), [({}, 512), ({"max_tokens": 7}, 7), ({"max_tokens": -1}, None)]
)
def test_an_answer_has_a_limit_unless_it_is_told_to_have_none(given, limit):
    params = run_sampling(Settings(**given), GenerationDefaults(), logprobs=None, grammar=None)
    assert params.max_tokens == limit
