"""Programs that are started."""

import os
import subprocess
import tempfile


def listing(folder: str) -> str:
    done = subprocess.run(f"ls -1 {folder}", shell=True, capture_output=True, text=True)
    return done.stdout


def count_lines(path: str) -> int:
    return int(subprocess.check_output("wc -l < '%s'" % path, shell=True))


def make_folder(name: str) -> int:
    return os.system("mkdir " + name)


def scratch() -> str:
    return tempfile.mktemp(suffix=".txt")


def publish(path: str) -> None:
    os.chmod(path, 0o777)
