import ast
import random
import sys
from pathlib import Path

import pytest
import requests

sys.path.insert(0, str(Path(__file__).parents[1]))
import gate

TEXT = (Path(__file__).parents[1] / "gate.py").read_text()


class Answer:
    text = "answer"
    status_code = 204


def test_new_token():
    random.seed(1)
    first = gate.new_token()
    random.seed(1)
    assert gate.new_token() != first
    assert len(first) == 12
    assert len(gate.new_token(3)) == 3


def test_reset_code():
    drawn = []
    for _ in range(2):
        random.seed(1)
        drawn.append([gate.reset_code() for _ in range(6)])
    assert drawn[0] != drawn[1]
    assert all(len(one) == 6 and one.isdigit() for one in drawn[0])


def test_signature():
    first = gate.signature("m", "s")
    assert first == gate.signature("m", "s") != gate.signature("n", "s") != gate.signature("m", "t")
    assert len(first) >= 56


def test_etag():
    assert gate.etag(b"a") == "86f7e437faa5a7fce15d1ddcb9eaeaea377667b8"
    assert "usedforsecurity=False" in TEXT


def test_is_valid():
    assert gate.is_valid("abc", "abc") is True
    assert gate.is_valid("abc", "abd") is False
    assert "compare_digest" in TEXT


def test_fetch(monkeypatch):
    sent = []
    monkeypatch.setattr(
        requests.sessions.Session, "request",
        lambda self, method, url, **options: sent.append(options) or Answer(),
    )
    assert gate.fetch("http://x/") == "answer"
    assert sent[0].get("verify", True) is not False
    assert sent[0]["timeout"] == 5


def test_ping(monkeypatch):
    sent = []
    monkeypatch.setattr(
        requests.sessions.Session, "request",
        lambda self, method, url, **options: sent.append(options) or Answer(),
    )
    assert gate.ping("http://x/") == 204
    assert sent[0].get("timeout")


def test_parse_port():
    class Stop:
        def __int__(self):
            raise KeyboardInterrupt

    assert gate.parse_port("8") == 8
    assert gate.parse_port("x", 9) == 9
    with pytest.raises(KeyboardInterrupt):
        gate.parse_port(Stop())


def test_ratio():
    cache = gate.Cache()
    try:
        assert cache.ratio() in (0, None)
    except ValueError:
        pass
    cache.hits, cache.misses = 1, 3
    assert cache.ratio() == 0.25


def test_key():
    assert gate.Cache().key("a") == "0cc175b9c0f1b6a831c399e269772661"
    assert TEXT.count("md5(") == TEXT.count("usedforsecurity=False") - 1 or "md5(" not in TEXT


def test_password():
    assigned = [
        node.value
        for node in ast.walk(ast.parse(TEXT))
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "API_PASSWORD"
    ]
    assert not isinstance(assigned[0], ast.Constant)
