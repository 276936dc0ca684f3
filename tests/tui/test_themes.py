"""Theme files: every mistake at once, the user's folder on top; and the contrast of ours."""

import itertools
import re

import pytest
from rich.color import Color as RichColor
from textual.color import Color

from app.tui.avatar.figure import FOLDER, load_figure
from app.tui.themes import (
    BASE_ROLES,
    BUILT_IN,
    DEFAULT,
    GROUP_DEFAULTS,
    default_theme,
    has_true_colors,
    load_theme,
    load_themes,
)
from app.tui.widgets.theme_colors import legible_text
from tests.tui.contrast import contrast, luminance

MINIMAL = 'base: {primary: "#ff0000", background: "#000000", foreground: "#ffffff"}\n'
OURS = load_themes([BUILT_IN])
COLORED = [name for name, found in OURS.items() if found.theme is not None and not found.theme.ansi]


PALETTES = [(name, true_colors) for name in COLORED for true_colors in (True, False)]


def colors(name, true_colors=True):
    theme = OURS[name].theme if true_colors else OURS[name].theme_256
    base = {role: getattr(theme, role, None) or theme.variables.get(role) for role in BASE_ROLES}
    return {**base, **theme.variables}


@pytest.fixture
def write(tmp_path):
    def write_one(text, name="mine"):
        path = tmp_path / f"{name}.yaml"
        path.write_text(text)
        return path

    return write_one


def test_at_least_eight_themes_are_shipped_and_none_is_broken():
    assert {name: found.problems for name, found in OURS.items() if found.problems} == {}
    assert len(OURS) >= 8
    assert DEFAULT in OURS
    assert sum(not found.theme.dark for found in OURS.values()) >= 3
    assert any(found.theme.ansi for found in OURS.values())
    assert all(found.title for found in OURS.values())


def test_three_colours_are_a_theme(write):
    found = load_theme(write(MINIMAL))
    assert found.problems == ()
    roles = {f"{group}-{role}" for group, roles in GROUP_DEFAULTS.items() for role in roles}
    assert roles <= set(found.theme.variables)
    assert found.theme.variables["kv-active"] == "#ff0000"


def test_references_are_followed(write):
    found = load_theme(write(MINIMAL + "kv: {own: $kv-active, active: $muted}\n"))
    assert found.theme.variables["kv-own"] == "#ffffff"


def test_all_mistakes_are_reported_together(write):
    found = load_theme(
        write(
            "dark: 3\nfoo: 1\n"
            'base: {primary: nocolour, background: "#000000", foreground: "#ffffff", colour: red}\n'
            "kv: {own: $nothing, active: $kv-lit, lit: $kv-active, free: 7}\n"
            "spark: [1]\n"
        )
    )
    assert found.theme is None
    problems = "; ".join(found.problems)
    for part in (
        "`dark` must be true or false",
        "foo",
        "`base.colour` is not a role",
        "'nocolour', which is not a colour",
        "`kv-own` refers to `$nothing`, which does not exist",
        "refers to itself",
        "`kv.free` must be a quoted colour",
        "`spark` must be a mapping",
    ):
        assert part in problems


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("base: {primary: red}\n", "`base.background` is missing"),
        ("just words\n", "must be a mapping"),
        ("base: [\n", "not YAML"),
        ("ansi: true\n" + MINIMAL, "an ansi theme uses ansi_… names only"),
    ],
)
def test_a_mistake_is_named(write, text, problem):
    found = load_theme(write(text))
    assert found.theme is None
    assert any(problem in one for one in found.problems)


def test_a_file_that_is_no_text_is_listed_too(tmp_path):
    (tmp_path / "odd.yaml").write_bytes(b"\xff\xfe\x00")
    (problem,) = load_themes([tmp_path])["odd"].problems
    assert problem.startswith("it cannot be read")


def test_the_users_folder_overrides_and_a_missing_one_is_empty(write, tmp_path):
    write(MINIMAL, "ganga")
    themes = load_themes([BUILT_IN, tmp_path, tmp_path / "absent"])
    assert themes["ganga"].path.parent == tmp_path
    assert set(themes) == set(OURS)


def test_contrast_is_that_of_wcag():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


KV_STATES = ("active", "own", "lit", "cached", "cursor", "shared", "pinned", "swapped")
TEXT = [
    "foreground", "muted", "faint", "primary", "secondary", "accent", "success", "warning", "error",
    "role-user", "role-assistant", "role-system", "status-ready", "status-busy", "status-loading",
    "status-failed", "spark-decode", "spark-prefill", "link-color",
]  # fmt: skip


@pytest.mark.parametrize(("name", "true_colors"), PALETTES)
def test_text_can_be_read(name, true_colors):
    found = colors(name, true_colors)
    pairs = [(text, ground) for text in TEXT for ground in ("background", "surface")]
    pairs += [(text, "panel") for text in ("foreground", "muted", "accent")]
    pairs += [("status-mode", "primary"), ("status-mode", "accent")]
    weak = {
        pair: round(contrast(found[pair[0]], found[pair[1]]), 2)
        for pair in pairs
        if contrast(found[pair[0]], found[pair[1]]) < 4.5
    }
    assert weak == {}


@pytest.mark.parametrize(("name", "true_colors"), PALETTES)
def test_glyphs_can_be_seen(name, true_colors):
    found = colors(name, true_colors)
    glyphs = [f"kv-{state}" for state in KV_STATES]
    glyphs += ["spark-kv", "avatar-outline"]
    weak = {
        glyph: round(contrast(found[glyph], found["background"]), 2)
        for glyph in glyphs
        if contrast(found[glyph], found["background"]) < 3
    }
    assert weak == {}


@pytest.mark.parametrize("name", COLORED)
def test_heat_steps_are_told_apart_in_greyscale(name):
    steps = [colors(name)[f"heat-{step}"] for step in range(6)]
    ratios = [contrast(first, second) for first, second in itertools.pairwise(steps)]
    assert min(ratios) > 1.25, ratios
    grey = [luminance(Color.parse(step)) for step in steps]
    assert grey in (sorted(grey), sorted(grey, reverse=True))


@pytest.mark.parametrize(("name", "true_colors"), PALETTES)
def test_sources_are_legible_and_told_apart_in_greyscale(name, true_colors):
    found = colors(name, true_colors)
    grounds = {role: found[f"source-{role}"] for role in GROUP_DEFAULTS["source"]}
    legible = {
        role: round(contrast(legible_text(ground, found), ground), 2)
        for role, ground in grounds.items()
    }
    assert {role: ratio for role, ratio in legible.items() if ratio < 4.5} == {}
    pairs = itertools.combinations(grounds.values(), 2)
    assert min(contrast(first, second) for first, second in pairs) > 1.25


@pytest.mark.parametrize("name", COLORED)
def test_every_theme_has_hand_picked_colours_of_the_256(name):
    assert OURS[name].theme_256 != OURS[name].theme
    cube = {RichColor.from_ansi(number).get_truecolor().hex for number in range(16, 256)}
    found = colors(name, true_colors=False)
    assert {role: found[role] for role in BASE_ROLES if found[role] not in cube} == {}


def test_palette_numbers_are_checked(write):
    found = load_theme(write(MINIMAL + "ansi256: {primary: 80, muted: 7, river: 20}\n"))
    assert found.problems == (
        "`ansi256.muted` must be a palette number from 16 to 255",
        "`ansi256.river` is not a role",
    )


def test_a_light_background_that_the_terminal_names_gets_a_light_theme():
    assert default_theme({}) == DEFAULT
    assert default_theme({"COLORFGBG": "15;0"}) == DEFAULT
    for background in ("0;15", "0;default;15", "0;7"):
        assert not OURS[default_theme({"COLORFGBG": background})].theme.dark


def test_true_colors_are_those_that_the_terminal_names():
    assert has_true_colors({"COLORTERM": "truecolor"})
    assert not has_true_colors({"TERM": "tmux-256color"})


def test_colours_are_nowhere_but_in_theme_files():
    sources = [*FOLDER.parent.rglob("*.py"), *FOLDER.parent.rglob("*.tcss"), *FOLDER.glob("*.txt")]
    hexes = {
        path.name: found
        for path in sources
        if (found := re.findall(r"#[0-9a-fA-F]{6}\b", path.read_text()))
        and path.name != "themes.py"  # the example of its docstring
    }
    assert hexes == {}


def test_the_avatar_uses_roles_that_every_theme_has():
    roles = set(load_figure(FOLDER / "bindu.txt").palette.values())
    for name in COLORED:
        assert roles <= set(colors(name))
