"""The code in an answer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.width.fence import code_of


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        ("```python\nx = 1\n```", "x = 1\n"),
        ("Here it is:\n\n```py\nx = 1\n```\nIt sets x.", "x = 1\n"),
        ("```\nx = 1\n```", "x = 1\n"),
        ("~~~python\nx = 1\n~~~", "x = 1\n"),
        ("````python\ns = '''\n```\n'''\n````", "s = '''\n```\n'''\n"),
        ("```python\nx = 1", "x = 1\n"),
        ("1. First:\n   ```python\n   x = 1\n   ```", "x = 1\n"),
        ("x = 1", "x = 1\n"),
        ("```python\r\nx = 1\r\n```", "x = 1\n"),
        (
            "```python\ndef f():\n    return 1\n```\nUse:\n```python\nf()\n```",
            "def f():\n    return 1\n",
        ),
        ("```python\n```", ""),
        ("", ""),
        ("  \n", ""),
    ],
)
def test_code_of(answer, code):
    assert code_of(answer) == code


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        ("x = 1\n```\nIt sets x.", "x = 1\n"),
        ("x = 1\n", "x = 1\n"),
        ("    return x\n```", "    return x\n"),
        ("```", ""),
    ],
)
def test_an_answer_whose_fence_the_prompt_opened(answer, code):
    assert code_of(answer, opened=True) == code


@given(st.text(alphabet="`~ \npxy=1"), st.booleans())
def test_any_answer_has_code_or_none(answer, opened):
    code = code_of(answer, opened=opened)
    assert code == "" or code.endswith("\n")
