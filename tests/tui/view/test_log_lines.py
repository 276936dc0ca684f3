"""Rows of the log pane: the newest records, filtered, within the width."""

import logging
import time

import pytest

from app.text.log_ring import LogEntry
from app.tui.view.log_lines import LogFilter, build_log_head, build_log_rows
from app.tui.view.spans import plain, width


def entry(number: int, text: str, level: int = logging.INFO, logger: str = "engine.x") -> LogEntry:
    return LogEntry(number, level, 3661.0 + number, logger, text)


ENTRIES = [
    entry(0, "started"),
    entry(1, "disk nearly full", logging.WARNING, "engine.memory.swap_tier"),
    entry(2, "a step failed " * 20, logging.ERROR, "engine.step.pipeline"),
]


@pytest.mark.parametrize("cells", [30, 70, 120])
def test_rows_fit_and_end_with_the_newest_record(cells):
    rows = build_log_rows(ENTRIES, cells, 4, local=time.gmtime)
    assert len(rows) == 4
    assert all(width(row) <= cells for row in rows)
    assert "a step" in plain(rows[-1:])


def test_a_row_has_time_level_logger_and_text():
    (row,) = build_log_rows(ENTRIES[:1], 120, 5, local=time.gmtime)
    assert plain([row]).split() == ["01:01:01", "info", "engine.x", "started"]


def test_a_long_record_is_cut_after_a_few_rows():
    rows = build_log_rows([entry(0, "word " * 400)], 60, 50)
    assert len(rows) == 6
    assert plain(rows).endswith("…")


def test_the_filter_takes_level_and_text_of_message_or_logger():
    assert [e.number for e in ENTRIES if LogFilter(logging.WARNING)(e)] == [1, 2]
    assert [e.number for e in ENTRIES if LogFilter(text="SWAP")(e)] == [1]
    assert [e.number for e in ENTRIES if LogFilter(logging.ERROR, "disk")(e)] == []
    assert LogFilter(logging.ERROR).next_level == logging.INFO


def test_the_head_says_what_is_shown():
    head = build_log_head(LogFilter(logging.WARNING, "x"), 2, 9, 1, ("l", "/"), 100)
    assert plain([head]) == "Log  2 of 9 records  l warnings and errors  / “x”  1 newer below"
