"""`pravaha agents run --record` and `agents replay`."""

import json

from typer.testing import CliRunner

from app.cli import cli


def invoke(*arguments):
    return CliRunner().invoke(cli, ["agents", *map(str, arguments)])


def test_a_recorded_run_replays_and_a_changed_file_is_found(tmp_path):
    folder, record = tmp_path / "src", tmp_path / "record"
    folder.mkdir()
    (folder / "a.py").write_text("def f(x):\n    return x == x\n")
    done = invoke("run", "logic_flaw", folder, "--no-model", "--record", record)
    assert done.exit_code == 1  # a finding
    assert {one.name for one in record.iterdir()} == {
        "request.json", "trajectory.jsonl", "model.jsonl", "result.json",
    }  # fmt: skip
    same = invoke("replay", record)
    assert (same.exit_code, "the same as recorded" in same.output) == (0, True)
    (folder / "a.py").write_text("def f(x):\n    return x\n")
    differs = invoke("replay", record, "--json")
    assert differs.exit_code == 1
    difference = json.loads(differs.output)["difference"]
    assert difference["recorded"]["rule"] == "self-comparison"
    missing = invoke("replay", tmp_path / "nothing")
    assert missing.exit_code == 2
