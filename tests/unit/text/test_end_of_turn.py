import pytest

from engine.text.end_of_turn import end_ids


@pytest.mark.parametrize("mark", ["<|eom_id|>", "<|call|>", "<|return|>"])
def test_a_token_after_a_call_ends_the_answer(mark):
    assert end_ids([], {mark: 7, "<|other|>": 8}, None) == {7}


def test_a_token_of_a_turn_ends_the_answer_if_the_template_has_it():
    special = {"<|end|>": 3}
    assert end_ids([1], special, "{{ '<|end|>' }}") == {1, 3}
    assert end_ids([1], special, None) == {1}
