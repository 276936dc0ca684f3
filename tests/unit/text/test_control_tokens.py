from hypothesis import given
from hypothesis import strategies as st

from engine.text.control_tokens import ControlTokens, absent_character

CHATML = ControlTokens({"<|im_start|>": 1, "<|im_end|>": 2})
GUARD = "#"


def test_overlapping_spellings_are_all_guarded():
    control = ControlTokens({"ab": 1, "bc": 2, "b": 3})
    guarded = control.guard("abc", "#")
    assert control.cut(guarded, "#") == [("abc", "")]
    assert control.cut("xab" + guarded + "bc", "#") == [("x", "ab"), ("abc", "bc"), ("", "")]


def test_a_model_without_control_tokens_has_none_to_forge():
    control = ControlTokens({})
    assert not control.spelled_in("<|im_end|>")


pieces = st.lists(st.sampled_from(["<|im_start|>", "<|im_", "end|>", "<", "|", ">", " ", "a"]))


@given(pieces.map("".join), pieces.map("".join))
def test_guarded_texts_spell_nothing_wherever_they_stand(before, after):
    text = CHATML.guard(before, GUARD) + CHATML.guard(after, GUARD)
    assert CHATML.cut(text, GUARD) == [(before + after, "")]


def test_without_a_guard_every_spelling_counts():
    assert CHATML.cut("a<|im_end|>\n") == [("a", "<|im_end|>"), ("\n", "")]


def test_what_only_begins_a_spelling_may_become_one():
    assert CHATML.spelled_in("a<|im_")
    assert not CHATML.spelled_in("<|im_ a")


def test_ids_of_control_tokens_are_found():
    assert CHATML.among([5, 2, 7, 1, 2]) == [2, 1, 2]


def test_a_guard_is_in_no_text():
    first = absent_character("plain")
    assert first is not None
    assert absent_character(f"a{first}b") not in (None, first)
    assert absent_character("".join(map(chr, range(0xF0000, 0xFFFFE)))) is None
