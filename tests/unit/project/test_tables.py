"""The tables of commands, settings and profiles in the documentation are those of the code."""

import runpy
from pathlib import Path

DOCS = Path(__file__).parents[3] / "docs"


def test_the_tables_are_as_written_by_their_script():
    make = runpy.run_path(str(DOCS / "make_tables.py"))
    for page, build in (
        ("tui.md", "commands_page"),
        ("settings.md", "settings_page"),
        ("api.md", "api_page"),
        ("agent-model.md", "model_page"),
    ):
        written = (DOCS / page).read_text(encoding="utf-8")
        assert written == make[build](), "run python docs/make_tables.py"
