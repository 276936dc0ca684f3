"""JSON files of models: what their writers write, and what is refused."""

import math
from pathlib import Path

import pytest

from engine.api.errors import ModelError
from engine.files.json_file import read_json


def written(folder: Path, text: str) -> Path:
    path = folder / "config.json"
    path.write_text(text)
    return path


def test_infinities_of_pythons_writer_are_numbers(tmp_path: Path) -> None:
    fields = read_json(written(tmp_path, '{"time_step_limit": [0.0, Infinity], "x": 1}'))
    assert fields.interval("time_step_limit", default=(1, 2)) == (0.0, math.inf)
    assert fields.integer("x") == 1


@pytest.mark.parametrize("text", ["[Infinity", "{Infinity: 1}", "NaN", '{"a": 1} Infinity', "[1]"])
def test_other_text_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(ModelError, match=r"config\.json (is not valid JSON|does not contain)"):
        read_json(written(tmp_path, text))


def test_nesting_that_is_too_deep_is_refused(tmp_path: Path) -> None:
    deep = '{"Infinity": ' + "[" * 100_000
    with pytest.raises(ModelError, match="is not valid JSON"):
        read_json(written(tmp_path, deep))
