import pytest

from options.reader import load, parse
from options.schema import OPTIONS


def test_strict_only_when_asked():
    assert parse(["a = 1", "b = 2", "host = h"]) == {"host": "h"}
    with pytest.raises(ValueError, match="unknown option a"):
        parse(["a = 1"], strict=True)
    with pytest.raises(ValueError, match="line 2"):
        parse(["host = h", "b = 1"], True)
    assert parse(["host = h"], strict=True) == {"host": "h"}
    assert parse(["x = 1"], strict=False) == {}


def test_load_ignores_unknown_and_keeps_defaults():
    values = load(["sound = loud", "debug = on"])
    assert values["debug"] is True
    assert values["port"] == OPTIONS["port"].default
