"""The key map: every id once, no key twice in a scope, none that terminals keep for themselves."""

import ast
import re
import runpy
from collections import Counter
from pathlib import Path

import pytest

from app.tui.keys import (
    ALL_KEYS,
    APP_KEYS,
    SCOPES,
    bindings,
    read_keymap,
    shown,
)

RESERVED = {f"ctrl+{name}" for name in ("s", "b", "a", "h", "m", "i", "left_square_bracket")} | {
    "f11"
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
    inner = {name for scope, keys in SCOPES.items() if scope != "app" for name in names(keys)}
    assert urgent & inner == set()
    assert not any(len(name) == 1 for name in urgent)


def test_each_action_has_a_name_and_a_description():
    for key in ALL_KEYS:
        assert key.label
        assert " " not in key.label
        assert key.help[0].isupper()
        assert not key.help.endswith(".")


def test_a_key_map_is_taken_as_it_is_when_nothing_is_wrong_with_it():
    given = {"quit": "ctrl+x, f12", "kv.zoom_in": "z", "pane.kv": "ctrl+y,9", "msg.next": "tilde"}
    good, problems = read_keymap(given)
    assert problems == []
    assert good == given | {"quit": "ctrl+x,f12"}


@pytest.mark.parametrize(
    ("entry", "sentence"),
    [
        ({"qiut": "f4"}, "'qiut' names no action: perhaps quit."),
        ({"zzzz": "f4"}, "'zzzz' names no action."),
        ({"pane.kv": "ctl+k"}, "'pane.kv' holds 'ctl+k', which is not a key."),
        ({"pane.kv": ""}, "'pane.kv' holds '', which is not a key."),
        ({"quit": "q"}, "which the prompt needs: use a function key or one with ctrl."),
        ({"send": "x"}, "which the prompt needs: use a function key or one with ctrl."),
        ({"help": "ctrl+q"}, "'help' holds 'ctrl+q', which is taken by 'quit'."),
        ({"quit": "f12", "theme": "f12"}, "'quit' holds 'f12', which is taken by 'theme'."),
    ],
)
def test_an_invalid_key_map_entry_is_skipped_and_reported(entry, sentence):
    good, problems = read_keymap(entry)
    assert [problem.endswith(sentence) for problem in problems] == [True]
    assert len(good) == len(entry) - 1


def test_two_actions_may_change_places():
    given = {"theme": "ctrl+q", "quit": "f9"}
    assert read_keymap(given) == (given, [])


def test_an_entry_left_out_gives_its_old_keys_back():
    good, problems = read_keymap({"theme": "ctrl+q", "quit": "no-key"})
    assert good == {}
    assert len(problems) == 2


async def test_remapped_keys_work_and_the_old_ones_do_not(screen):
    async with screen(keymap={"pane.stats": "f12,Q"}, size=(160, 45)) as ui:
        await ui.shown("f12 stats")
        await ui.press("f5")
        assert ui.app.layout.pane == "chat"
        await ui.type("Q4")
        assert ui.prompt.text == "Q4"
        await ui.press("f12")
        assert ui.app.layout.pane == "stats"
        await ui.press("f2", "shift+tab", "4")
        assert ui.app.layout.pane == "chat"
        await ui.press("Q")
        assert ui.app.layout.pane == "stats"
        await ui.press("f1")
        await ui.shown("f12 Q")


def test_keys_are_written_as_people_read_them():
    help_key = next(key for key in ALL_KEYS if key.id == "help")
    assert shown(help_key) == "f1 ?"
    assert shown(help_key, {"help": "f12, slash"}) == "f12 /"


async def test_enter_can_break_lines_and_another_key_send(screen):
    async with screen("an answer", keymap={"newline": "enter", "send": "ctrl+j"}) as ui:
        await ui.type("one")
        await ui.press("enter")
        await ui.type("two")
        assert ui.prompt.text == "one\ntwo"
        await ui.press("ctrl+j")
        assert ui.session.path()[0].text == "one\ntwo"


def test_the_page_of_keys_is_the_table():
    page = Path(__file__).parents[2] / "docs" / "keys.md"
    make = runpy.run_path(str(page.with_name("make_keys.py")))["build_page"]
    assert page.read_text(encoding="utf-8") == make(), "run python docs/make_keys.py"


FOCUSED = {
    "app": "#messages", "prompt": "#prompt", "transcript": "#messages", "branches": "#branch-tree",
    "list": "#chat-list", "kv": "KvMap", "trie": "KvTree", "scheduler": "#scheduler", "log": "#logs",
    "agents": "#agents", "approvals": "#approvals", "count": "#ask-count", "cards": "#cards",
    "compare": "#compare", "sources": "#sources",
}  # fmt: skip
"""The widget that has the focus when the keys of a scope are pressed."""


def method_of(app, node, action):
    """The method that an action calls, which is bound at a node."""
    name, arguments = re.fullmatch(r"(?:app\.)?(\w+)(?:\((.*)\))?", action).groups()
    values = ast.literal_eval(f"({arguments},)") if arguments else ()
    if name == "perform":
        return getattr(getattr(app.actions, values[0]), values[1])
    return getattr(app if action.startswith("app.") else node, f"action_{name}")


async def test_every_key_reaches_its_action_from_its_pane(screen):
    async with screen() as ui:
        for scope, keys in SCOPES.items():
            nodes = ui.app.query_one(FOCUSED[scope]).ancestors_with_self
            assert nodes[-1] is ui.app
            for key in keys:
                for name in key.keys.split(","):
                    bound = [
                        (node, binding)
                        for node in nodes
                        for binding in node._bindings.key_to_bindings.get(name, [])
                    ]
                    node, first = next((one for one in bound if one[1].priority), bound[0])
                    assert first.id.removesuffix(".letter") == key.id, (scope, name)
                    assert callable(method_of(ui.app, node, first.action))
