"""Which tokens fill a gap between two texts, by a vocabulary's names and a file's metadata."""

import pytest

from engine.text.infill import find_infill_tokens

BAR, SPACE = "\uff5c", "\u2581"
QWEN = ["<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>", "<|fim_pad|>", "<|file_sep|>"]


def found(vocabulary, declared=None):
    ids = {text: number for number, text in enumerate(vocabulary, 10)}
    return find_infill_tokens(ids.get, declared)


@pytest.mark.parametrize(
    ("vocabulary", "prompt"),
    [
        (QWEN, [10, 1, 12, 2, 11]),
        (["<fim_prefix>", "<fim_suffix>", "<fim_middle>"], [10, 1, 11, 2, 12]),
        (["<fim-prefix>", "<fim-suffix>", "<fim-middle>"], [10, 1, 11, 2, 12]),
        (
            [f"<{BAR}fim{SPACE}{name}{BAR}>" for name in ("begin", "hole", "end")],
            [10, 1, 11, 2, 12],
        ),
        ([f"{SPACE}<PRE>", f"{SPACE}<SUF>", f"{SPACE}<MID>"], [10, 1, 11, 2, 12]),
        (["<|code_prefix|>", "<|code_suffix|>", "<|code_middle|>"], [10, 1, 11, 2, 12]),
        (["<[fim-prefix]>", "<[fim-suffix]>", "<[fim-middle]>"], [11, 2, 10, 1, 12]),
        (["[PREFIX]", "[SUFFIX]", "[MIDDLE]"], [11, 2, 10, 1]),
    ],
)
def test_each_family_has_its_tokens_in_its_order(vocabulary, prompt):
    assert found(vocabulary).prompt([1], [2]) == prompt


def test_a_middle_ends_at_the_tokens_that_follow_it_in_training():
    assert found([*QWEN, "<|repo_name|>", "x"]).end_ids == {10, 11, 12, 13, 14, 15}


@pytest.mark.parametrize("vocabulary", [[], QWEN[:2], ["[PREFIX]"], ["<PRE>", "<SUF>"]])
def test_a_vocabulary_without_all_of_them_has_none(vocabulary):
    assert found(vocabulary) is None


@pytest.mark.parametrize("spelling", ["fim_{}_token_id", "{}"])
def test_a_file_names_tokens_of_any_text(spelling):
    old = {"pre": "prefix_token_id", "suf": "suffix_token_id", "mid": "middle_token_id"}
    names = {role: spelling.format(role if "{}_" in spelling else old[role]) for role in old}
    declared = {names["pre"]: 3, names["suf"]: 4, names["mid"]: 5, "fim_sep_token_id": 6}
    tokens = found([], declared)
    assert tokens.prompt([1], [2]) == [3, 1, 4, 2, 5]
    assert tokens.end_ids == {3, 4, 5, 6}
    assert found(QWEN, declared).prompt([1], [2]) == [3, 1, 4, 2, 5]


def test_a_file_that_names_only_some_tokens_is_completed_by_the_vocabulary():
    assert found(QWEN, {"fim_pre_token_id": 10}).prompt([1], [2]) == [10, 1, 12, 2, 11]
