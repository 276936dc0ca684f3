"""The script of `make gpu`, as far as it runs without a GPU."""

import json
import sys

import pytest
import torch

from benchmarks import gpu


def test_the_script_compares_and_measures_on_a_cpu(tmp_path, monkeypatch, capsys):
    report = tmp_path / "report.json"
    arguments = ["--device", "cpu", "--model", "tiny", "--batch", "2", "--json", str(report)]
    monkeypatch.setattr(sys, "argv", ["gpu.py", *arguments])
    gpu.main()
    assert "graphs: skipped" in capsys.readouterr().out
    found = json.loads(report.read_text())
    assert [result["equal"] for result in found["parity"]] == [1.0]
    assert found["graphs"] == []
    (row,) = found["throughput"]
    assert row["batch"] == 2
    assert row["eager"] > 0
    assert row["roofline"] > 0


def test_a_profile_of_steps(monkeypatch, capsys):
    arguments = ["--device", "cpu", "--model", "tiny", "--batch", "1", "--profile"]
    monkeypatch.setattr(sys, "argv", ["gpu.py", *arguments])
    gpu.main()
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("profile")]
    found = json.loads(line.removeprefix("profile"))
    assert found["step_us"] > 0
    assert found["kernels"] == 0  # there is no GPU


def test_without_a_gpu_the_script_exits_with_a_message(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(sys, "argv", ["gpu.py"])
    with pytest.raises(SystemExit, match="no GPU: nothing was measured"):
        gpu.main()
