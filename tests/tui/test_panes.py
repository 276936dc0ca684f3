"""Panes: the same key shows, maximises and restores; help and palette reach everything."""

from functools import partial

import pytest
from textual.command import CommandPalette
from textual.fuzzy import Matcher

from app.slash import parse
from app.tui.keys import ALL_KEYS, Group, shown
from app.tui.palette import commands_without_keys, score, title_of
from app.tui.widgets.help import HelpScreen, build_help
from app.tui.widgets.kv_map import KvMap
from app.tui.widgets.stats import StatsPane
from engine.api.scheduling import Scheduling
from tests.fakes.fake_run_service import FakeRunService
from tests.tui.harness import converse


def rivers(session, client):
    converse(session, client, ("Tell me of rivers", "All about rivers."))


async def test_stats_show_maximise_and_restore(screen):
    async with screen(prepare=rivers, size=(160, 45)) as ui:
        await ui.press("f5")
        await ui.shown("Throughput", "first token", "120 ms")
        assert isinstance(ui.app.focused, StatsPane)
        assert ui.app.query_one("#left").display
        await ui.press("f5")
        assert ui.app.layout.maximised
        assert not ui.app.query_one("#left").display
        await ui.press("f5")
        await ui.shown("All about rivers.")
        assert not ui.app.layout.maximised


@pytest.mark.parametrize(("columns", "presses"), [(160, 2), (120, 1), (80, 1)])
async def test_the_kv_map_fills_the_screen_and_f2_restores(screen, columns, presses):
    async with screen(prepare=rivers, size=(columns, 30)) as ui:
        await ui.press(*["f3"] * presses)
        await ui.shown("KV map", "cached")
        assert isinstance(ui.app.focused, KvMap)
        assert ui.app.query_one(KvMap).size.width > columns - 6
        await ui.press("f2")
        await ui.shown("All about rivers.")
        assert ui.prompt.has_focus


async def test_figures_are_those_of_the_snapshot(screen):
    async with screen(prepare=rivers, size=(200, 60)) as ui:
        await ui.press("f5", "f5")
        snapshot = ui.client.snapshot()
        await ui.shown(
            f"{snapshot.blocks.cached}  kept for reuse",
            f"step {snapshot.step}",
            "1 stop",
            "llama, 135M parameters",
        )


@pytest.mark.parametrize("cells", [60, 96, 130])
def test_help_lists_every_key_and_command_within_its_width(cells):
    lines = build_help({"quit": "ctrl+x"}, {"stop": "no answer is being generated"}, cells)
    rows = ["".join(span.text for span in line) for line in lines]
    words = " ".join(" ".join(rows).split())
    assert all(len(row) <= cells for row in rows)
    for key in ALL_KEYS:
        assert shown(key, {"quit": "ctrl+x"}) in words
    for command in parse.available("screen"):
        assert f"/{command.name}" in words
    assert "ctrl+q" not in words


def test_help_says_a_reason_that_most_keys_share_once_in_the_heading():
    why = "the conversation is empty"
    keys = [key for key in ALL_KEYS if key.group is Group.NAVIGATE]
    disabled = {key.id: why for key in keys[1:]} | {keys[1].id: "another reason"}
    rows = ["".join(span.text for span in line) for line in build_help({}, disabled, 80)]
    assert [row for row in rows if why in row] == [
        row for row in rows if row.startswith("Navigate (")
    ]
    assert any("(another reason)" in row for row in rows)


def test_help_puts_the_meaning_below_a_command_that_is_longer_than_its_column():
    rows = ["".join(span.text for span in line) for line in build_help({}, {}, 80)]
    at = rows.index("/shorten drop|summarise")
    assert rows[at + 1].lstrip().startswith("leave earlier messages out")


async def test_help_opens_on_f1_and_question_mark_and_scrolls(screen):
    async with screen(prepare=rivers, size=(80, 24)) as ui:
        await ui.press("f1")
        await ui.shown(
            "Keys and commands", "How to: letters after shift+tab", "Continue from a word"
        )
        await ui.press("end")
        await ui.shown("send text that begins with a slash")
        await ui.press("escape", "shift+tab", "question_mark")
        assert isinstance(ui.app.screen, HelpScreen)


async def test_the_palette_runs_an_action(screen):
    async with screen(prepare=rivers) as ui:
        await ui.press("ctrl+p")
        await ui.type("stats")
        await ui.shown("Engine stats (again: maximise)")
        await ui.press("enter")
        await ui.shown("Throughput")


@pytest.mark.parametrize(
    ("word", "entry"),
    [
        ("fork", "Fork: Begin a branch at the token cursor, else after the message"),
        ("expand", "Expand: Generate 2 to 9 answers side by side: x, then their number"),
        ("prune", "Prune: Remove the message and all below it; u restores"),
        ("promote", "Promote: Make the branch the main one"),
        ("undo", "Undo the last operation on the conversation"),
    ],
)
def test_an_action_is_found_in_the_palette_by_its_name(word, entry):
    titles = [title_of(key) for key in ALL_KEYS if key.palette]
    assert max(titles, key=partial(score, Matcher(word))) == entry


def test_every_command_is_in_the_palette_once():
    named = {key.label for key in ALL_KEYS if key.palette} | {key.id for key in ALL_KEYS}
    listed = [command.name for command in commands_without_keys()]
    assert {"attach", "import", "rename", "system", "shorten"} <= set(listed)
    assert {"export", "fork", "expand", "undo", "theme", "quit", "help"}.isdisjoint(listed)
    assert {c.name for c in parse.available("screen")} <= named | {*listed, "model", "sampling"}


async def test_the_palette_writes_a_command_that_needs_words_into_the_prompt(screen):
    async with screen(prepare=rivers) as ui:
        await ui.type("notes.md")
        await ui.press("ctrl+p")
        await ui.type("import: open")
        await ui.shown("Import: open a conversation")
        await ui.press("enter")
        await ui.until(lambda: ui.prompt.text == "/import notes.md ", "the command")
        assert ui.prompt.has_focus


async def test_the_palette_switches_the_scheduling_policy(screen):
    async with screen(prepare=rivers) as ui:
        for words, title in (
            ("scheduling: edf", "Scheduling: edf"),
            ("steps: timed", "Steps: timed"),
        ):
            await ui.press("ctrl+p")
            await ui.type(words)
            await ui.shown(title)
            await ui.press("enter")
            await ui.until(lambda: not isinstance(ui.app.screen, CommandPalette), "the closing")
        told = "Scheduling: earliest deadline first; timed steps of 60 ms."
        await ui.until(lambda: ui.toasts[-1:] == [told], "the switch")
        assert ui.client.scheduling == Scheduling("edf", "timed")


async def test_the_palette_opens_a_conversation_whatever_its_title_is(screen):
    def odd(session, client):
        rivers(session, client)
        session.conversations.rename(session.tree_id, "a [/] title [b]x")
        session.conversations.open_new()
        converse(session, client, ("another", "one"))

    async with screen(prepare=odd) as ui:
        await ui.press("ctrl+p")
        await ui.shown("Search for commands")
        await ui.type("title")
        await ui.shown("Open: a [/] title [b]x")
        await ui.press("enter")
        await ui.shown("All about rivers.")


async def test_the_palette_gives_the_reason_for_what_cannot_be_done(screen):
    async with screen() as ui:
        await ui.press("ctrl+p")
        await ui.type("text is kept")
        await ui.shown("s: no answer is being generated")
        await ui.press("enter")
        await ui.until(lambda: not isinstance(ui.app.screen, CommandPalette), "the closing")
        await ui.until(lambda: ui.toasts == ["no answer is being generated"], "the reason")


async def test_the_palette_lists_every_action_with_its_key(screen):
    async with screen(prepare=rivers) as ui:
        entries = {entry.text: entry for entry in ui.app.palette}
        for key in ALL_KEYS:
            assert shown(key) in entries[title_of(key)].help
        await ui.press("ctrl+p")
        await ui.type("hide or show what")
        await ui.shown("z: only with the focus on: Branch tree")


async def test_the_palette_goes_to_a_branch(screen):
    async with screen(prepare=rivers) as ui:
        first = ui.session.head
        ui.session.branches.edit(first, "Something else.")
        other = ui.session.head
        ui.session.branches.fork(first)
        ui.session.branches.rename_branch("ideas")
        ui.session.branches.adopt(other)
        assert ui.session.tree.branches()["ideas"] == first != ui.session.head
        await ui.app.show_chat()
        await ui.press("ctrl+p")
        await ui.type("branch: ideas")
        await ui.shown("Branch: ideas")
        await ui.press("enter")
        await ui.until(lambda: ui.session.head == first, "the branch")


async def test_the_palette_previews_a_theme_and_esc_restores_the_old_one(screen):
    async with screen(prepare=rivers) as ui:
        before = ui.app.theme
        for leave, after in (("escape", before), ("enter", "dawn")):
            await ui.press("ctrl+p")
            await ui.type("theme: dawn")
            await ui.until(lambda: ui.app.theme == "dawn", "the preview")
            await ui.press(leave)
            await ui.until(lambda: not isinstance(ui.app.screen, CommandPalette), "the closing")
            await ui.until(lambda after=after: ui.app.theme == after, "the theme")


async def test_the_palette_writes_a_call_of_an_agent_into_the_prompt(screen):
    async with screen(prepare=rivers, run_service=FakeRunService()) as ui:
        await ui.press("ctrl+p")
        await ui.until(lambda: ui.app.agent_names.known, "the agents")
        await ui.type("security_audit")
        await ui.shown("Agent: security_audit")
        await ui.press("enter")
        await ui.until(lambda: ui.prompt.text == "/agents security_audit ", "the command")


async def test_remapped_keys_work_and_unknown_ids_are_reported(screen):
    async with screen(keymap={"help": "f12", "hlep": "f10"}) as ui:
        assert "perhaps help" in ui.toasts[0]
        await ui.press("f12")
        assert isinstance(ui.app.screen, HelpScreen)
        await ui.shown("f12")


async def test_the_mode_is_that_of_the_main_screen_during_and_after_a_dialog(screen):
    async with screen() as ui:
        await ui.shown("PROMPT")
        await ui.press("f9")
        await ui.pilot.pause()
        await ui.press("down", "escape")
        await ui.settled()
        assert "PROMPT" in ui.text
        await ui.type("iii")
        assert ui.prompt.text == "iii"


async def test_a_terminal_that_was_too_small_for_a_moment_keeps_the_focus(screen):
    async with screen() as ui:
        await ui.type("half a sen")
        await ui.pilot.resize_terminal(30, 8)
        await ui.shown("40×10")
        await ui.pilot.resize_terminal(100, 30)
        await ui.shown("PROMPT")
        await ui.type("tence")
        assert ui.prompt.text == "half a sentence"
