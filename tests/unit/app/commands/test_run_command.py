"""`pravaha run`: what its options become, without a model."""

import json

import pytest
from typer.testing import CliRunner

from app.cli import cli
from app.commands.run import read_schema, run_sampling
from app.settings.settings import Settings
from engine.api.generation_defaults import GenerationDefaults
from engine.files.cache_dir import CACHE_DIR_VARIABLE
from tests.fakes.tiny_gguf import write_tiny_gguf
from tests.fakes.tiny_vocabulary import base_fields


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


@pytest.mark.parametrize("raw", [True, False])
def test_a_base_model_continues_the_text_and_says_so(tmp_path, monkeypatch, raw):
    monkeypatch.setenv(CACHE_DIR_VARIABLE, str(tmp_path / "cache"))
    file = str(write_tiny_gguf(tmp_path / "base.gguf", fields=base_fields()))
    arguments = ["run", "in the", "--json", "--max-tokens", "4", *(["--raw"] if raw else [])]
    done = CliRunner().invoke(cli, ["-m", file, *arguments])
    assert done.exit_code == 0, done.output
    told = "pravaha: base has no chat template: it continues text.\n"
    assert (told in done.stderr) is not raw
    assert json.loads(done.stdout)["usage"]["prompt_tokens"] == 2
