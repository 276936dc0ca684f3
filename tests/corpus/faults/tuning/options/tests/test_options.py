import pytest

from options.reader import load, parse
from options.schema import convert


def test_convert():
    assert convert("Yes", bool) is True
    assert convert("off", bool) is False
    assert convert("12", int) == 12
    with pytest.raises(ValueError):
        convert("maybe", bool)


def test_comments_and_blank_lines():
    assert parse(["# all", "", "port = 1 # here"]) == {"port": "1"}


def test_unknown_names_are_left_out():
    assert parse(["colour = red", "port = 9"]) == {"port": "9"}


def test_environment_first():
    assert load(["port = 1"], {"APP_PORT": "2"})["port"] == 2


def test_no_equals_sign():
    with pytest.raises(ValueError, match="line 2"):
        parse(["port = 1", "debug"])
