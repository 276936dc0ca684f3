"""Of a project's options for pytest, those that decide what the tests do are kept."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.project_tests.pytest_options import kept_options


@pytest.mark.parametrize(
    ("name", "text", "kept"),
    [
        ("pytest.ini", "[pytest]\naddopts = --cov=shop --cov-report term -n 4 --strict-markers\n", "--strict-markers"),
        ("pytest.ini", "[pytest]\naddopts = -n auto -x --maxfail 2 --import-mode=importlib\n", "--import-mode=importlib"),
        (".pytest.ini", "[pytest]\naddopts = -q -vv -ra --ds=shop.settings\n", "--ds=shop.settings"),
        ("pyproject.toml", '[tool.pytest.ini_options]\naddopts = ["-p", "no:randomly", "-m", "not slow"]\n', "-m 'not slow'"),
        ("tox.ini", "[tox]\nx = 1\n[pytest]\naddopts = --durations=3 -p shop.plugin\n", "-p shop.plugin"),
        ("setup.cfg", "[tool:pytest]\naddopts =\n    --tb=long\n    --doctest-modules\n", "--doctest-modules"),
        ("pytest.ini", "[pytest]\naddopts = --cov\n", ""),
        ("pytest.ini", "[pytest]\naddopts = --strict-markers\n", None),
        ("pytest.ini", "[pytest]\nmarkers = slow\n", None),
        ("pytest.ini", "no section", None),
        ("pyproject.toml", "[tool.pytest", None),
        ("pytest.ini", "[pytest]\naddopts = 'open\n", None),
    ],
)  # fmt: skip
def test_options_are_kept_or_left_out(name, text, kept, tmp_path):
    (tmp_path / name).write_text(text)
    assert kept_options(tmp_path) == kept


def test_the_first_file_that_configures_pytest_counts(tmp_path):
    (tmp_path / "setup.cfg").write_text("[tool:pytest]\naddopts = -n 2\n")
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    assert kept_options(tmp_path) is None


@given(st.binary(max_size=400))
def test_any_bytes_are_no_error(data):
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as folder:
        for name in ("pyproject.toml", "tox.ini"):
            (Path(folder) / name).write_bytes(data)
        kept = kept_options(Path(folder))
    assert kept is None or isinstance(kept, str)
