"""Theme files: every mistake at once, the user's folder on top; and the contrast of ours."""

import re

import pytest

from app.tui.avatar.figure import FOLDER, load_figure
from app.tui.themes import BASE_ROLES, BUILT_IN, DEFAULT, GROUP_DEFAULTS, load_theme, load_themes
from tests.tui.contrast import contrast

MINIMAL = 'base: {primary: "#ff0000", background: "#000000", foreground: "#ffffff"}\n'
OURS = load_themes([BUILT_IN])
COLORED = [name for name, found in OURS.items() if found.theme is not None and not found.theme.ansi]


def colors(name):
    theme = OURS[name].theme
    base = {role: getattr(theme, role, None) or theme.variables.get(role) for role in BASE_ROLES}
    return {**base, **theme.variables}


@pytest.fixture
def write(tmp_path):
    def write_one(text, name="mine"):
        path = tmp_path / f"{name}.yaml"
        path.write_text(text)
        return path

    return write_one


def test_at_least_four_themes_are_shipped_and_none_is_broken():
    assert {name: found.problems for name, found in OURS.items() if found.problems} == {}
    assert len(OURS) >= 4
    assert DEFAULT in OURS
    assert any(not found.theme.dark for found in OURS.values())
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


TEXT = [
    "foreground", "muted", "faint", "primary", "secondary", "accent", "success", "warning", "error",
    "role-user", "role-assistant", "role-system", "status-ready", "status-busy", "status-loading",
    "status-failed", "spark-decode", "spark-prefill", "link-color",
]  # fmt: skip


@pytest.mark.parametrize("name", COLORED)
def test_text_can_be_read(name):
    found = colors(name)
    pairs = [(text, ground) for text in TEXT for ground in ("background", "surface")]
    pairs += [(text, "panel") for text in ("foreground", "muted", "accent")]
    pairs += [("status-mode", "primary"), ("status-mode", "accent")]
    weak = {
        pair: round(contrast(found[pair[0]], found[pair[1]]), 2)
        for pair in pairs
        if contrast(found[pair[0]], found[pair[1]]) < 4.5
    }
    assert weak == {}


@pytest.mark.parametrize("name", COLORED)
def test_glyphs_can_be_seen(name):
    found = colors(name)
    glyphs = [f"kv-{state}" for state in ("active", "own", "lit", "cached", "cursor")]
    glyphs += ["spark-kv", "avatar-outline"]
    weak = {
        glyph: round(contrast(found[glyph], found["background"]), 2)
        for glyph in glyphs
        if contrast(found[glyph], found["background"]) < 3
    }
    assert weak == {}


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
