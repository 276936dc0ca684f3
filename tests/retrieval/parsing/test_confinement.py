import subprocess
import sys
from pathlib import Path

import pytest

import engine
from engine import _core

_ROOT = Path(engine.__file__).parent.parent
_PROBE = """
import os, socket, sys
sys.path.insert(0, {root!r})
from pathlib import Path
from engine.retrieval.parsing.confinement import confine
confine(Path({root!r}), 1 << 31)
def fails(action):
    try:
        action()
    except OSError:
        return True
    return False
print(fails(lambda: open({secret!r}).read()), fails(lambda: open({new!r}, "w").write("x")),
      fails(lambda: socket.socket(socket.AF_INET)), fails(lambda: os.listdir({folder!r})))
import email, html.parser
"""


def _probe(tmp_path: Path) -> list[str]:
    secret = tmp_path / "secret"
    secret.write_text("x")
    new = tmp_path / "new"
    code = _PROBE.format(root=str(_ROOT), secret=str(secret), new=str(new), folder=str(tmp_path))
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert not new.exists() or not new.read_bytes()
    return done.stdout.split()


def test_files_cannot_be_read_or_written_and_modules_can_be_imported(tmp_path: Path) -> None:
    if not _core.landlock_abi():
        pytest.skip("this kernel has no Landlock")
    reads, writes, _, lists = _probe(tmp_path)
    assert (reads, writes, lists) == ("True", "True", "True")


def test_no_socket_can_be_made(tmp_path: Path) -> None:
    if not _core.has_seccomp_filters():
        pytest.skip("this kernel has no seccomp filters")
    assert _probe(tmp_path)[2] == "True"
