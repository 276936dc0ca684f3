"""No name or text of a client forges a line of a log."""

import logging

import pytest

from app.commands.log_file import log_to_file
from app.commands.log_format import LOG_FORMAT
from app.commands.log_stderr import log_to_stderr

FORGED = "x\r\n2026-01-01 00:00:00,000 WARNING app: forged\x1b]0;title\x07\u202e\u2028\x85y"


@pytest.fixture
def no_handlers():
    """Removes the handlers that a test adds to the root."""
    root = logging.getLogger()
    before, root.handlers = root.handlers, []
    yield root
    for handler in root.handlers:
        handler.close()
    root.handlers = before


def written(text):
    """The lines of a record, and those that begin without a blank."""
    lines = text.rstrip("\n").split("\n")
    return [line for line in lines if not line.startswith(" ")]


def failed(message):
    try:
        raise ValueError(message)
    except ValueError as error:
        return (ValueError, error, error.__traceback__)


@pytest.mark.parametrize("exc_info", [None, failed(FORGED)])
def test_a_record_is_one_paragraph_without_control_characters(exc_info):
    record = logging.LogRecord("app", logging.ERROR, "x.py", 1, "tool %s", (FORGED,), exc_info)
    text = LOG_FORMAT.format(record)
    assert len(written(text)) == 1
    assert not [one for one in text if ord(one) < 32 and one != "\n"]
    assert "\u202e" not in text
    assert "forged" in text


def test_the_log_file_has_it(tmp_path, no_handlers):
    log_to_file(tmp_path / "log")
    logging.getLogger("app.server").error("model %s", FORGED)
    assert len(written((tmp_path / "log").read_text())) == 1


def test_the_servers_output_has_it(capsys, no_handlers):
    log_to_stderr()
    logging.getLogger("app.server").error("model %s", FORGED)
    assert len(written(capsys.readouterr().err)) == 1
