"""Records of measurements: kept whole or not at all, and looked up in the right order."""

import json
import random
from contextlib import suppress

import pytest

from agents.api.agent_spec import Capability
from agents.model import profile_record
from agents.model.profile_record import (
    ProfileRecord,
    load_record,
    packaged_records,
    record_from_fields,
    save_record,
)
from agents.plugins.registry import load_registry
from agents.steps.questions import QUESTIONS

RECORD = ProfileRecord(
    "toy",
    {
        "labels": {"a": True, "b": False},
        "functions": {"f": True},
        "outputs": {"Plan/x": True, "Plan/y": False, "Text/z": True},
    },
    {"severity": {"helps": True, "p": 0.01}, "better": {"helps": False, "p": 0.5}},
    is_complete=True,
    seconds=12.34,
)
SHORT = ProfileRecord("toy", {"labels": {"a": False}})


def test_a_profile_follows_from_a_record():
    profile = RECORD.profile("m")
    assert profile.scores == {Capability.LABELS: 0.5, Capability.WRITE: 1.0}
    assert profile.outputs == {"Plan": 0.5, "Text": 1.0}
    assert profile.questions == {"severity"}


def test_records_are_kept(tmp_path):
    assert load_record("m", tmp_path) is None
    save_record("m", RECORD, tmp_path)
    assert load_record("m", tmp_path) == ProfileRecord(
        RECORD.name, RECORD.items, RECORD.questions, is_complete=True, seconds=12.3
    )
    assert [path.name for path in tmp_path.iterdir()] == ["m.json"]


@pytest.mark.parametrize(
    "damage",
    [b"", b"[]", b"{", b'{"version": 2}', b'{"version": 1, "scores": {"x": 1}}', b"null", b"7"],
)
def test_damaged_and_older_records_are_measured_again(tmp_path, damage):
    (tmp_path / "m.json").write_bytes(damage)
    assert load_record("m", tmp_path) is None


def test_any_damage_is_an_error_of_one_kind():
    rng = random.Random(3)
    text = json.dumps(RECORD.fields())
    for _ in range(400):
        data = json.loads(text)
        place, key = data, rng.choice(list(data))
        while isinstance(place[key], dict) and place[key] and rng.random() < 0.7:
            place = place[key]
            key = rng.choice(list(place))
        place[key] = rng.choice([None, [], {}, "x", 3, True, {"a": 1}])
        with suppress(ValueError):  # and nothing else
            record_from_fields(data)


def test_a_record_that_cannot_be_written_leaves_nothing(tmp_path, monkeypatch):
    save_record("m", SHORT, tmp_path)
    monkeypatch.setattr(profile_record.Path, "replace", _full)
    with pytest.raises(OSError, match="full"):
        save_record("m", RECORD, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["m.json"]
    assert load_record("m", tmp_path) == SHORT


def _full(self, target):
    raise OSError("the disk is full")


def test_a_complete_record_goes_before_the_packaged_one_and_that_before_a_short_one(
    tmp_path, monkeypatch
):
    packaged = ProfileRecord("packaged", is_complete=True)
    monkeypatch.setattr(profile_record, "packaged_records", lambda: {"m": packaged})
    assert load_record("m", tmp_path) == packaged
    save_record("m", SHORT, tmp_path)
    assert load_record("m", tmp_path) == packaged
    save_record("m", RECORD, tmp_path)
    assert load_record("m", tmp_path).name == "toy"


def test_packaged_records_name_what_exists():
    outputs = load_registry().outputs
    for record in packaged_records().values():
        assert set(record.questions) <= set(QUESTIONS)
        assert set(record.outputs()) <= set(outputs)
        assert len(record.scores()) >= 1
