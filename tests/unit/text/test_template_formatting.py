"""`str.format` and `%` with bounds give what Python gives, or refuse."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.text.template_budget import MAX_TEXT, TemplateBudget, TemplateLimitError, spending
from engine.text.template_formatting import check_percent, format_fields, format_mapping

VALUES = st.one_of(st.text(max_size=5), st.integers(-(10**20), 10**20), st.floats(), st.none())
FORMATS = st.text(alphabet="{}{}a01.!:>^*+-#,rsdxfge%()[]", max_size=24)
PERCENTS = st.text(alphabet="%%%()a01.*#- +srdixfgeczhl", max_size=24)


@given(FORMATS, st.lists(VALUES, max_size=3), VALUES)
def test_fields_are_those_of_python(text, args, named):
    with spending(TemplateBudget()):
        try:
            ours = format_fields(text, *args, a=named)
        except (TemplateLimitError, LookupError, ValueError, OverflowError):
            return
        try:
            expected = text.format(*args, a=named)
        except (ValueError, TypeError):  # None takes no width; text_of writes it first
            assert None in [*args, named]
            return
    assert ours == expected


@given(
    PERCENTS, st.one_of(VALUES, st.tuples(VALUES, VALUES), st.dictionaries(st.just("a"), VALUES))
)
def test_percent_is_charged_at_least_its_result(text, values):
    charged = 0

    class Counting(TemplateBudget):
        def text(self, length):
            nonlocal charged
            charged = max(charged, length)
            super().text(length)

    with spending(Counting(clock=lambda: 0.0)):
        try:
            check_percent(text, values)
        except TemplateLimitError:
            return
    try:
        result = text % values
    except (TypeError, ValueError, KeyError, OverflowError):
        return
    assert len(result) <= charged


@pytest.mark.parametrize(
    "attempt",
    [
        lambda: format_fields("{0.real}", 1),
        lambda: format_fields("{0[0]}", "ab"),
        lambda: format_fields("{a.x}", a=1),
        lambda: format_mapping("{a[b]}", {"a": {"b": 1}}),
        lambda: format_fields("{:1000}", "a"),
        lambda: format_fields("{:.1000f}", 1.0),
        lambda: format_fields("{!r}", "a" * (MAX_TEXT // 2)),
        lambda: format_fields("{}", object()),
    ],
)
def test_what_reaches_into_a_value_or_grows_is_refused(attempt):
    with spending(TemplateBudget()), pytest.raises(TemplateLimitError):
        attempt()
