import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
import gate


def test_token():
    assert len(gate.new_token(5)) == 5


def test_valid():
    assert gate.is_valid("a", "a")
    assert not gate.is_valid("a", "b")


def test_port():
    assert gate.parse_port("8") == 8
    assert gate.parse_port("x") == 80


def test_etag():
    assert gate.etag(b"a") == "86f7e437faa5a7fce15d1ddcb9eaeaea377667b8"
