"""The benchmark of verified width: what it reads, measures and prints, over a scripted model."""

import gzip
import json

from agents.model.session import ModelSession
from benchmarks.humaneval_width import Problem, dataset, measure, table
from tests.fakes.scripted_client import ScriptedClient

STUB = 'def double(x):\n    """Twice x.\n    >>> double(2)\n    4\n    """\n'
TEST = "def check(candidate):\n    assert candidate(3) == 6\n"
PROBLEM = Problem(0, STUB, "double", TEST)
RIGHT = "def double(x):\n    return x * 2\n"
WRONG = "def double(x):\n    return x ** 2\n"


async def test_both_ways_are_scored_by_the_hidden_tests():
    answers = [f"```python\n{WRONG}```", WRONG, RIGHT, RIGHT, RIGHT]
    one = await measure(ModelSession(ScriptedClient(answers)), PROBLEM, 4)
    assert not one["baseline"]["right"]
    assert one["width"]["right"]
    assert one["width"]["kind"] == "vote of those that pass"
    assert [c["right"] for c in one["width"]["candidates"]] == [False, True, True, True]
    text = table([one])
    assert "1 problems" in text
    assert "0.000    1.000" in text


async def test_the_hidden_test_is_not_in_the_prompt():
    client = ScriptedClient([RIGHT] * 5)
    await measure(ModelSession(client), PROBLEM, 4)
    for at, request in enumerate(client.requests):
        assert "candidate(3)" not in client.prompt_text(at)
        assert (request.cache_salt == "baseline") == (at == 0)


def test_the_dataset_is_read_packed_or_not(tmp_path):
    row = {"task_id": "HumanEval/7", "prompt": STUB, "entry_point": "double", "test": TEST}
    line = json.dumps(row) + "\n"
    (tmp_path / "a.jsonl").write_text(line)
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(line.encode()))
    wanted = [Problem(7, STUB, "double", TEST)]
    assert dataset(tmp_path / "a.jsonl") == dataset(tmp_path / "a.jsonl.gz") == wanted
