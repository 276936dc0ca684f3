"""Loads settings: flags take precedence over the environment, `pravaha.toml` and defaults.

Sources are merged here and not by pydantic-settings, so that an error can name the flag, the variable
or the file that set the value.
"""

import difflib
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails
from pydantic_settings import EnvSettingsSource

from app.settings.errors import ConfigurationError
from app.settings.settings import ENV_PREFIX, ROWS, Settings

FILE_NAME = "pravaha.toml"

TABLES = frozenset({"guardrails", "memory"})
"""Tables of `pravaha.toml`: `mode` in `[guardrails]` is the setting `guardrails_mode`."""

_ENVIRONMENT_ONLY = "config_dir"  # the folder of the file, which the file itself cannot set


def load_settings(
    flags: Mapping[str, Any] | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> Settings:
    """The settings from all sources.

    Args:
        flags: command-line options by field; None values were not given.
        environ: the environment, by default the process's own.
        folder: the folder of the `pravaha.toml` with the higher precedence, by default the current one.

    Raises:
        ConfigurationError: one sentence that names the source and the setting.
    """
    environ = os.environ if environ is None else environ
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}

    def merge(found: Mapping[str, Any], origin: dict[str, str]) -> None:
        for name, value in found.items():
            values[name] = _with_servers(values.get(name), value) if name == "mcp" else value
        origins.update(origin)

    from_environment = _read_environment(environ)
    for path in toml_files(environ, folder):
        found = _read_toml(path)
        _refuse_widening(found, path, environ)
        merge(found, {name: f"{path}: {name}" for name in found})
    merge(from_environment, {name: ENV_PREFIX + name.upper() for name in from_environment})
    given = {name: value for name, value in (flags or {}).items() if value is not None}
    merge(given, {name: flag_of(name) for name in given})
    try:
        return Settings(**values)
    except ValidationError as error:
        problems = error.errors(include_url=False)
        raise ConfigurationError("; ".join(_sentence(p, origins) for p in problems) + ".") from None


def toml_files(environ: Mapping[str, str], folder: Path | None = None) -> list[Path]:
    """The configuration files that exist, in increasing order of precedence."""
    candidates = [user_folder(environ) / FILE_NAME, (folder or Path.cwd()) / FILE_NAME]
    return [path for path in dict.fromkeys(candidates) if path.is_file()]


def _refuse_widening(found: Mapping[str, Any], path: Path, environ: Mapping[str, str]) -> None:
    """Raises ConfigurationError if a project's file has a setting that only the user may set."""
    if path.parent == user_folder(environ):
        return
    for name in sorted(name for name in found if ROWS[name].user_only):
        raise ConfigurationError(
            f"{path}: {name} is not for a project to decide: set it in "
            f"{user_folder(environ) / FILE_NAME} or by {ENV_PREFIX}{name.upper()}."
        )


def user_folder(environ: Mapping[str, str]) -> Path:
    """The folder of the user's own configuration."""
    named = environ.get(ENV_PREFIX + _ENVIRONMENT_ONLY.upper())
    return Path(named).expanduser() if named else Settings().config_dir


def _with_servers(earlier: Any, table: Any) -> Any:
    """The table `mcp` with the servers of a source of lower precedence beside its own."""
    if not isinstance(earlier, dict) or not isinstance(table, dict):
        return table
    before, own = earlier.get("servers", {}), table.get("servers", {})
    if not isinstance(before, dict) or not isinstance(own, dict):
        return table
    return {**earlier, **table, "servers": {**before, **own}}


def flag_of(field: str) -> str:
    """The command-line option of a setting."""
    return "--" + field.replace("_", "-")


def _read_environment(environ: Mapping[str, str]) -> dict[str, Any]:
    for name in environ:
        field = name.removeprefix(ENV_PREFIX).lower()
        if name.startswith(ENV_PREFIX) and field not in Settings.model_fields:
            raise ConfigurationError(f"{name} is not a setting{_near(field, upper=True)}")
    found = _EnvironmentSource(environ)()
    return {name: value for name, value in found.items() if value is not None}


class _EnvironmentSource(EnvSettingsSource):
    """Variables of a given mapping instead of the process's own."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        super().__init__(Settings)

    def decode_complex_value(self, field_name: str, field: FieldInfo, value: Any) -> Any:
        """A setting that has its own way of reading strings is not written as JSON."""
        if ROWS[field_name].read is not None:
            return value
        return super().decode_complex_value(field_name, field, value)

    def _load_env_vars(self) -> Mapping[str, str | None]:
        # An empty variable counts as unset: `PRAVAHA_THEME= pravaha`.
        return {name.lower(): value for name, value in self._environ.items() if value}


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigurationError(f"{path} can't be read: {error}.") from error
    found = _flattened(found, path)
    for name in found:
        if name == _ENVIRONMENT_ONLY:
            raise ConfigurationError(
                f"{path}: {name} is the folder of this file: set PRAVAHA_CONFIG_DIR instead."
            )
        if name not in Settings.model_fields:
            raise ConfigurationError(f"{path}: {name} is not a setting{_near(name)}")
    return found


def _flattened(found: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """The members of the tables of several settings, such as `[guardrails]`, by the settings' names."""
    flat: dict[str, Any] = {}
    for name, value in found.items():
        if name not in TABLES or not isinstance(value, dict):
            flat[name] = value
            continue
        for member, inner in value.items():
            if f"{name}_{member}" not in Settings.model_fields:
                near = _near(f"{name}_{member}").replace(f"{name}_", f"{name}.")
                raise ConfigurationError(f"{path}: {name}.{member} is not a setting{near}")
            flat[f"{name}_{member}"] = inner
    return flat


def _near(name: str, *, upper: bool = False) -> str:
    names = [n for n in Settings.model_fields if n != _ENVIRONMENT_ONLY or upper]
    near = difflib.get_close_matches(name, names, n=1)
    if not near:
        return "."
    return f": did you mean {ENV_PREFIX + near[0].upper() if upper else near[0]}?"


def _sentence(problem: ErrorDetails, origins: Mapping[str, str]) -> str:
    field = str(problem["loc"][0])
    message = problem["msg"]
    for prefix in ("Value error, ", "Input "):
        message = message.removeprefix(prefix)
    shown = "what was given" if ROWS[field].secret else repr(problem["input"])
    where = ".".join([origins.get(field, field), *(str(part) for part in problem["loc"][1:])])
    return f"{where} is {shown} but {message[:1].lower()}{message[1:]}"
