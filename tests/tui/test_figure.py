"""Figure files: every mistake in one message; what is shown when."""

import pytest

from app.tui.avatar.figure import FOLDER, FigureError, Play, load_figure, parse_figure
from app.tui.avatar.half_blocks import render_frame
from app.tui.view.mood import Mood

GOOD = """# a dot
size 2x2
palette a=$avatar-body
state idle fps 4 loop ascii "(1)" "(2)"
order idle 0 0 1
frame idle 0
a.
.a
frame idle 1
aa
..
"""


def test_a_figure_is_parsed():
    idle = parse_figure(GOOD, "dot").state(Mood.IDLE)
    assert (idle.fps, idle.play) == (4, Play.LOOP)
    assert [frame[0] for frame in idle.frames] == ["a.", "a.", "aa"]
    assert idle.faces == ("(1)", "(1)", "(2)")


def test_frames_follow_time_or_progress():
    figure = parse_figure(GOOD, "dot")
    loop = figure.state(Mood.IDLE)
    assert [loop.index(t / 4) for t in range(5)] == [0, 1, 2, 0, 1]
    assert loop.index(0.25, fps=8) == 2
    assert not loop.still(100)
    once = parse_figure(GOOD.replace("loop", "once"), "dot").state(Mood.IDLE)
    assert [once.index(t / 4) for t in range(5)] == [0, 1, 2, 2, 2]
    assert (once.still(0.4), once.still(0.5)) == (False, True)
    progress = parse_figure(GOOD.replace("loop", "progress"), "dot").state(Mood.IDLE)
    assert [progress.index(99, progress=share) for share in (0, 0.4, 1)] == [0, 1, 2]


def test_the_small_form_of_a_progress_is_spread_over_it():
    text = (
        GOOD.replace("loop", "progress").replace("order idle 0 0 1\n", "")
        + "frame idle 2\naa\naa\n"
    )
    small = SMALL + "frame2 idle 1\na..\na..\na..\na..\n"
    first, second, third = parse_figure(text + small, "dot").state(Mood.IDLE).small
    assert first == second != third


SMALL = "size2 3x4\nframe2 idle 0\na..\n.a.\n..a\n...\n"


def test_the_small_form_repeats_for_each_frame():
    idle = parse_figure(GOOD + SMALL, "dot").state(Mood.IDLE)
    assert idle.small == (("a..", ".a.", "..a", "..."),) * 3


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("size2 3x4", "size2 3x6", "size2 must be WIDTHx4"),
        ("..a\n...\n", "..a\n", "the frame has 3 rows, not 4"),
        ("frame2 idle 0", "frame2 idle 1", "frame2 1 of idle is out of order"),
        ("frame2 idle 0", "frame2 error 0", "frames of error without a state line"),
        ("size2 3x4\n", "", "a frame before the size"),
    ],
)
def test_mistakes_of_the_small_form_are_reported(old, new, problem):
    with pytest.raises(FigureError, match=problem):
        parse_figure(GOOD + SMALL.replace(old, new), "dot")


@pytest.mark.parametrize("name", ["bindu", "kamal"])
def test_our_figures_have_every_mood_in_both_forms(name):
    figure = load_figure(FOLDER / f"{name}.txt")
    missing = set(Mood) - set(figure.states)
    assert missing <= {Mood.SWAPPING}  # falls back to the pressure of the KV pool
    for state in figure.states.values():
        assert len(state.small) == len(state.frames)
        assert state.faces


def test_moods_without_frames_fall_back():
    figure = parse_figure(GOOD, "dot")
    assert all(figure.state(mood) is figure.state(Mood.IDLE) for mood in Mood)


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("size 2x2", "size 2x3", "the height even"),
        ("size 2x2", "size 200x2", "at most 64x64"),
        ("a=$avatar-body", "a=body", "'a=body' is not letter=$role"),
        ("a.\n.a", "a.\n.b", "'b' is not in the palette"),
        ("a.\n.a", "a..\n.a", "the row is 3 wide, not 2"),
        ("aa\n..\n", "aa\n", "the frame has 1 rows, not 2"),
        ("frame idle 1", "frame idle 2", "frame 2 of idle is out of order"),
        ("frame idle 1", "frame sleepy 1", "is not `frame MOOD N`"),
        ("order idle 0 0 1", "order idle 0 2", "names a frame that does not exist"),
        ("order idle 0 0 1", "order idle", "is not `order MOOD"),
        ("fps 4", "fps 0", "fps must be at least 1"),
        ("loop", "bounce", "loop|once|progress"),
        ("state idle", "state done", "frames of idle without a state line"),
        ("# a dot", "colour red", "is neither size, palette"),
    ],
)
def test_a_mistake_is_named(old, new, problem):
    assert old in GOOD
    with pytest.raises(FigureError, match="dot") as caught:
        parse_figure(GOOD.replace(old, new), "dot")
    assert problem in str(caught.value)


def test_all_mistakes_are_in_one_message():
    broken = GOOD.replace("fps 4", "fps 0").replace("aa\n", "ab\n").replace("palette", "pallete")
    with pytest.raises(FigureError) as caught:
        parse_figure(broken, "dot")
    assert str(caught.value).count(";") >= 3


def test_bindu_looks_different_in_every_mood():
    figure = load_figure(FOLDER / "bindu.txt")
    assert (figure.width, figure.height) == (16, 16)
    assert set(figure.states) == set(Mood) - {Mood.SWAPPING}
    assert figure.state(Mood.SWAPPING) is figure.state(Mood.KV_PRESSURE)
    looks = [frozenset(state.frames) for state in figure.states.values()]
    assert len(set(looks)) == len(looks)
    for state in figure.states.values():
        assert state.faces
        assert all(face.isascii() for face in state.faces)


def test_two_pixel_rows_share_a_text_row_and_transparency_stays_blank():
    from rich.color import Color

    red = Color.parse("#ff0000")
    ((first, second, third, fourth),) = render_frame(("aa..", "a.a."), {"a": red})
    assert [cell.text for cell in (first, second, third, fourth)] == ["▀", "▀", "▄", " "]
    assert first.style.bgcolor == red
    assert second.style.bgcolor is None
