import pytest

from app.slash.names import beginning_with, either, meant, near_names
from engine.api.errors import InvalidRequest

NAMES = ["qwen3-0.6b", "qwen2.5-coder", "smollm2", "Smol"]


def test_the_beginning_of_only_one_name_stands_for_it_whatever_its_case():
    assert meant("SMOLL", NAMES, "model") == "smollm2"
    assert meant("qwen3", NAMES, "model") == "qwen3-0.6b"


def test_a_whole_name_stands_for_itself_though_another_begins_so():
    assert meant("smol", NAMES, "model") == "Smol"
    assert beginning_with("Smol", ["Smol", "smol", "smol2"]) == ["Smol"]


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        ("qw", "qw begins several names: qwen3-0.6b or qwen2.5-coder."),
        ("smolm2", "There is no model smolm2. Did you mean smollm2"),
        ("coder", "Did you mean qwen2.5-coder?"),
        ("xyz", "There is no model xyz. /model lists them."),
        ("", "There is no model ."),
    ],
)
def test_what_means_no_name_is_refused_with_those_that_are_near(typed, sentence):
    with pytest.raises(InvalidRequest) as refused:
        meant(typed, NAMES, "model", "/model lists them.")
    assert sentence in str(refused.value)


def test_a_control_sequence_is_not_repeated():
    with pytest.raises(InvalidRequest) as refused:
        meant("a\x1b[2J", ["ab"], "theme")
    assert "\x1b" not in str(refused.value)


def test_many_names_are_cut_short():
    assert either(["a"]) == "a"
    assert either(["a", "b", "c"]) == "a, b or c"
    assert either([str(n) for n in range(9)]) == "0, 1, 2, 3, 4 or one of 4 more"


def test_names_that_contain_the_word_follow_those_that_are_like_it():
    assert near_names("notes", ["old-notes-2024", "nodes"]) == ["nodes", "old-notes-2024"]
    assert near_names("notes", ["old-notes-2024", "nodes"], parts=False) == ["nodes"]


def test_a_name_that_is_clearly_nearer_stands_alone():
    names = ["security_audit", "crypto_audit", "syntax_audit"]
    assert near_names("secrity_audit", names) == ["security_audit"]
    assert near_names("_audit_", names) != ["security_audit"]
