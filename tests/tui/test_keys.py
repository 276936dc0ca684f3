"""The key map: every id once, no key twice in a scope, none that terminals keep for themselves."""

from collections import Counter

import pytest

from app.tui.keys import (
    ALL_KEYS,
    APP_KEYS,
    KV_KEYS,
    LIST_KEYS,
    PROMPT_KEYS,
    TRANSCRIPT_KEYS,
    bindings,
    check_keymap,
    shown,
)

RESERVED = {f"ctrl+{name}" for name in ("s", "b", "a", "h", "m", "i", "left_square_bracket")} | {
    "f11"
}
SCOPES = {
    "app": APP_KEYS,
    "prompt": PROMPT_KEYS,
    "transcript": TRANSCRIPT_KEYS,
    "list": LIST_KEYS,
    "kv": KV_KEYS,
}


def names(keys):
    return [name for key in keys for name in key.keys.split(",")]


def test_ids_are_unique():
    assert [name for name, count in Counter(key.id for key in ALL_KEYS).items() if count > 1] == []


@pytest.mark.parametrize("scope", SCOPES)
def test_no_key_has_two_meanings_in_one_scope(scope):
    assert [name for name, count in Counter(names(SCOPES[scope])).items() if count > 1] == []


def test_terminals_and_multiplexers_keep_their_keys():
    assert set(names(ALL_KEYS)) & RESERVED == set()
    assert not [name for name in names(ALL_KEYS) if name.startswith("alt+")]


def test_priority_keys_are_taken_by_no_pane():
    urgent = {b.key for b in bindings(APP_KEYS) if b.priority}
    urgent = {name for keys in urgent for name in keys.split(",")}
    inner = set(names((*PROMPT_KEYS, *TRANSCRIPT_KEYS, *LIST_KEYS, *KV_KEYS)))
    assert urgent & inner == set()
    assert not any(len(name) == 1 for name in urgent)


def test_each_has_a_word_and_a_sentence():
    for key in ALL_KEYS:
        assert key.label
        assert " " not in key.label
        assert key.help[0].isupper()
        assert not key.help.endswith(".")


def test_a_key_map_is_checked_against_the_ids():
    assert check_keymap({"quit": "ctrl+x", "kv.zoom_in": "z"}) == []
    (problem,) = check_keymap({"qiut": "x"})
    assert "'qiut', which is no action; did you mean quit?" in problem
    (problem,) = check_keymap({"zzzz": "x"})
    assert problem.endswith("which is no action.")


def test_keys_are_written_as_people_read_them():
    help_key = next(key for key in ALL_KEYS if key.id == "help")
    assert shown(help_key) == "f1 ?"
    assert shown(help_key, {"help": "f12, slash"}) == "f12 /"
