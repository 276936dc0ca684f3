"""What native code prints while the screen is open goes to the log."""

import subprocess
import sys

CHILD = """
import os, sys
from pathlib import Path
from app.tui.native_output import native_output_to
with native_output_to(Path(sys.argv[1])):
    os.write(1, b"from C\\n")
    os.write(2, b"from C, too\\n")
    sys.__stdout__.write("for the terminal\\n")
os.write(1, b"after\\n")
"""


def run(log):
    return subprocess.run(
        [sys.executable, "-c", CHILD, str(log)], capture_output=True, text=True, check=True
    )


def test_descriptors_lead_to_the_log_and_back(tmp_path):
    log = tmp_path / "native.log"
    done = run(log)
    assert log.read_text() == "from C\nfrom C, too\n"
    assert (done.stdout, done.stderr) == ("for the terminal\nafter\n", "")
    assert log.stat().st_mode & 0o777 == 0o600


def test_a_log_that_cannot_be_opened_is_no_reason_to_fail(tmp_path):
    assert run(tmp_path).stdout == "for the terminal\nafter\n"
