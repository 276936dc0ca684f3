"""The script of `make gpu`, as far as it runs without a GPU."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from benchmarks import gpu

ROOT = Path(__file__).parents[2]


def test_the_script_compares_and_measures_on_a_cpu(tmp_path):
    report = tmp_path / "report.json"
    arguments = ["--device", "cpu", "--model", "tiny", "--batch", "2", "--json", str(report)]
    done = subprocess.run(
        [sys.executable, ROOT / "benchmarks" / "gpu.py", *arguments],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr
    assert "graphs: skipped" in done.stdout
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
