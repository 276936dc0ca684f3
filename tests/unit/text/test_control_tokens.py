from hypothesis import given
from hypothesis import strategies as st

from engine.text.control_tokens import ControlTokens, absent_character

CHATML = ControlTokens({"<|im_start|>": 1, "<|im_end|>": 2})
GUARD = "#"


def test_overlapping_spellings_are_all_guarded():
    control = ControlTokens({"ab": 1, "bc": 2, "b": 3})
    guarded = control.insert_guard("abc", "#")
    assert control.split(guarded, "#") == [("abc", "")]
    assert control.split("xab" + guarded + "bc", "#") == [("x", "ab"), ("abc", "bc"), ("", "")]


def test_a_model_without_control_tokens():
    control = ControlTokens({})
    assert not control.is_spelled_in("<|im_end|>")


pieces = st.lists(st.sampled_from(["<|im_start|>", "<|im_", "end|>", "<", "|", ">", " ", "a"]))


@given(pieces.map("".join), pieces.map("".join))
def test_guarded_texts_contain_no_spelling_when_joined(before, after):
    text = CHATML.insert_guard(before, GUARD) + CHATML.insert_guard(after, GUARD)
    assert CHATML.split(text, GUARD) == [(before + after, "")]


def test_without_a_guard_every_spelling_is_a_control_token():
    assert CHATML.split("a<|im_end|>\n") == [("a", "<|im_end|>"), ("\n", "")]


def test_a_partial_spelling_at_the_end_is_found():
    assert CHATML.is_spelled_in("a<|im_")
    assert not CHATML.is_spelled_in("<|im_ a")


def test_control_token_ids_are_selected_in_order():
    assert CHATML.select([5, 2, 7, 1, 2]) == [2, 1, 2]


def test_a_guard_does_not_occur_in_the_text():
    first = absent_character("plain")
    assert first is not None
    assert absent_character(f"a{first}b") not in (None, first)
    assert absent_character("".join(map(chr, range(0xF0000, 0xFFFFE)))) is None
