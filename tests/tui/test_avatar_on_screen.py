"""The figure beside the chat, its face in the header where there is no room, or nothing."""

from app.tui.avatar import figures
from app.tui.avatar.figure import FOLDER, load_figure
from app.tui.glyphs import ASCII
from app.tui.themes import BUILT_IN, DEFAULT, load_themes
from app.tui.view.mood import Mood, MoodState
from app.tui.view.spans import plain
from app.tui.widgets.avatar import Avatar
from app.tui.widgets.lines import Lines
from tests.tui.harness import converse

FACE = "(o_o)"


def header(ui):
    return "".join(span.text for span in ui.app.query_one("#header", Lines).lines[0])


async def test_the_header_shows_the_small_figure_between_100_and_140_columns(screen):
    async with screen("Words " * 20, size=(110, 32)) as ui:
        lines = ui.app.query_one("#header", Lines).lines
        assert len(lines) == 2
        assert "▀" in plain(lines)
        assert FACE not in plain(lines)
        assert "Pravāha" in plain(lines[:1])
        assert "idle" in plain(lines[1:])
        await ui.ask("A question")
        ui.client.step(2)
        ui.clock.now += 1.0
        await ui.shown("tok/s")
        assert "▀" in plain(ui.app.query_one("#header", Lines).lines)


async def test_the_header_shows_the_face_on_narrow_short_and_colourless_screens(
    screen, monkeypatch
):
    async with screen(size=(140, 36)) as ui:
        assert FACE not in header(ui)  # the figure is beside the chat
        for size in ((90, 36), (110, 20), (70, 30)):
            await ui.pilot.resize_terminal(*size)
            await ui.settled()
            if ui.app.query_one("#header").display:  # a short screen has no header
                await ui.until(lambda: FACE in header(ui), "the face in the header")
                assert len(ui.app.query_one("#header", Lines).lines) == 1
    monkeypatch.setenv("PRAVAHA_CHARSET", "ascii")
    async with screen(size=(110, 32)) as ui:
        assert FACE in header(ui)


async def test_a_figure_that_repeats_itself_is_dizzy_and_names_the_key(screen, monkeypatch):
    monkeypatch.setattr(
        "engine.conversations.running_answers.RunningAnswers.stopped_for_repetition",
        property(lambda self: bool(self._loaded.current.nodes)),
    )

    def looped(session, client):
        converse(session, client, ("Tell me of rivers", "All about rivers."))

    async with screen(prepare=looped, size=(160, 40), keymap={"regen": "f12"}) as ui:
        await ui.shown("f12 tries again")
        assert ui.app.view.avatars[1].shown[0] is Mood.DIZZY


async def test_another_set_can_be_chosen_and_an_own_one(screen, tmp_path):
    async with screen(avatar="kamal", size=(120, 36)) as ui:
        assert not ui.toasts
        assert ui.app.view.avatars[0]._figure.palette["p"] == "avatar-cheek"
    own = tmp_path / "own"
    own.mkdir()
    text = (FOLDER / "kamal.txt").read_text(encoding="utf-8")
    (own / "mine.txt").write_text(text, encoding="utf-8")
    (own / "bad.txt").write_text(text.replace("size 16x16", "size 16x17"), encoding="utf-8")
    (own / "odd.txt").write_text(text.replace("$avatar-cheek", "$rouge"), encoding="utf-8")
    async with screen(avatar="mine", avatars_dir=own) as ui:
        assert not ui.toasts
    problem = "The avatar bad cannot be shown: bad.txt: line 4: the size must be"
    async with screen(avatar="bad", avatars_dir=own) as ui:
        assert len(ui.toasts) == 1
        assert problem in ui.toasts[0]
    roles = load_themes([BUILT_IN])[DEFAULT].theme.variables
    for name, words in (
        ("bad", problem),
        ("odd", "odd.txt: no theme has the role rouge"),
        ("none", "There is no avatar none: choose one of bad, bindu, kamal, mine, odd, off."),
    ):
        assert words in figures.choose_figure(name, roles, own)[1]


def test_the_face_follows_the_mood():
    avatar = Avatar(load_figure(FOLDER / "bindu.txt"), ASCII, animate=False, colored=False)
    faces = {mood: avatar.face(MoodState(mood, 0.0), 0.0) for mood in Mood}
    assert all(faces.values())
    assert len(set(faces.values())) > 4


async def test_it_can_be_off(screen):
    async with screen(avatar="off") as ui:
        assert FACE not in header(ui)
        assert not any(each.display for each in ui.app.view.avatars)
