"""Imports that code uses and forgot."""

import pytest

from agents.width.missing_imports import with_imports


@pytest.mark.parametrize(
    ("code", "line"),
    [
        ("def f(x):\n    return math.sqrt(x)\n", "import math"),
        ("def f(x):\n    return factorial(x)\n", "from math import factorial"),
        ("def f(x: List[int]):\n    return Counter(x)\n", "from collections import Counter"),
        ("def f(x: List[int]):\n    return x\n", "from typing import List"),
        ("@lru_cache\ndef f(x):\n    return x\n", "from functools import lru_cache"),
    ],
)
def test_what_is_added(code, line):
    after = with_imports(code)
    assert line in after.splitlines()
    assert after.endswith(code)
    assert with_imports(after) == after


@pytest.mark.parametrize(
    "code",
    [
        "import math\n\ndef f(x):\n    return math.sqrt(x)\n",
        "from math import *\n\nx = 1\n",
        "def factorial(n):\n    return 1\n\ndef f(x):\n    return factorial(x)\n",
        "def f(string):\n    return string.upper()\n",
        "def f(x):\n    re = 1\n    return re\n",
        "def f(x):\n    return unknown(x)\n",
        "def f(x):\n    try:\n        pass\n    except E as time:\n        return time\n",
        "def f(:",
        "",
    ],
)
def test_what_stays(code):
    assert with_imports(code) == code


def test_what_the_file_has_is_not_imported():
    code = "def f(x):\n    return factorial(x)\n"
    assert with_imports(code, {"factorial"}) == code


def test_a_path_in_the_first_line_stays_there():
    after = with_imports("# shop.py\ndef f(x):\n    return math.pi\n")
    assert after.splitlines()[:2] == ["# shop.py", "import math"]


@pytest.mark.parametrize("head", ["from __future__ import annotations\n", '"""A module."""\n'])
def test_what_stands_above_all_imports_stays_there(head):
    code = with_imports(f"{head}\n\ndef f(x):\n    return math.sqrt(x)\n")
    assert code.startswith(f"{head}import math\n")
    compile(code, "code.py", "exec")
