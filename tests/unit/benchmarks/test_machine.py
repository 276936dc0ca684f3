"""`benchmarks/machine.py`: what every result file says about its measurement."""

import ast
import json
import sys
from datetime import date

import pytest

from benchmarks.machine import ROOT, command_line, cpu_facts, write_result

CPUINFO = """\
processor\t: 0
cpu family\t: 25
model\t\t: 17
model name\t: AMD EPYC
flags\t\t: fpu sse2 avx2 avx512_vnni fma amx_int8

processor\t: 1
cpu family\t: 25
model\t\t: 17
model name\t: AMD EPYC
flags\t\t: fpu sse2 avx2 avx512_vnni fma amx_int8
"""


def test_a_cpu_is_told_by_name_number_and_vector_instructions():
    assert cpu_facts(CPUINFO) == {
        "cpu": "AMD EPYC",
        "family": "25",
        "model": "17",
        "logical_cpus": 2,
        "flags": ["amx_int8", "avx2", "avx512_vnni", "fma"],
    }


def test_a_result_has_date_machine_versions_and_command(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["/home/me/benchmarks/peers.py", "--dir", "/home/me/peers"])
    path = tmp_path / "result.json"
    write_result(path, {"rounds": 3})
    found = json.loads(path.read_text())
    assert found["rounds"] == 3
    assert found["command"] == "python benchmarks/peers.py --dir peers"
    assert date.fromisoformat(found["date"])
    assert found["machine"]["usable_cpus"] >= 1
    assert found["machine"]["memory_gb"] > 0
    assert found["machine"]["cpu"]
    assert found["pravaha"]
    assert list(tmp_path.iterdir()) == [path]


def test_a_command_has_no_private_directories():
    assert command_line(["a/b/x.py", "--json=/home/me/r.json", "results/r.json", "--n", "2"]) == (
        "python b/x.py --json=r.json results/r.json --n 2"
    )


@pytest.mark.parametrize(
    "script",
    [path for path in sorted(ROOT.glob("benchmarks/*.py")) if '"--json"' in path.read_text()],
    ids=lambda path: path.stem,
)
def test_every_script_with_a_json_result_writes_its_origin(script):
    """A script with `--json` calls `write_result` or `with_origin`, and writes JSON in no other way."""
    calls = [
        ast.unparse(node.func)
        for node in ast.walk(ast.parse(script.read_text()))
        if isinstance(node, ast.Call)
    ]
    assert {"write_result", "with_origin"} & set(calls)
    assert not any(call.endswith(".write_text") and "json" in call for call in calls)
