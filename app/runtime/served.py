"""Opens the models that `pravaha --serve` offers, from settings."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from app.runtime.opening import embedder, engine_config, find_model
from app.settings.errors import ConfigurationError
from app.settings.settings import Settings
from app.text.byte_size import parse_size
from engine.api.keep_alive import FOR_EVER
from engine.memory.host import available_memory
from engine.models.progress import ProgressCallback, ignore_progress

if TYPE_CHECKING:
    from engine.api.config import EngineConfig
    from engine.runtime.engine import AsyncPravahaEngine
    from engine.runtime.loading import FreeMemory
    from engine.runtime.served_models import ServedModels


def open_served_models(
    settings: Settings,
    progress: ProgressCallback = ignore_progress,
    *,
    niceness: int = 0,
    any_installed: bool = False,
) -> "ServedModels":
    """The models of `--model`, `--further-models` and `--max-models`; none is loaded yet.

    Args:
        settings: the settings.
        progress: called while the demo model is fetched.
        niceness: as `EngineConfig.niceness`.
        any_installed: offer every installed model, also without `--max-models`.

    Raises:
        ConfigurationError: an alias or a share cannot be parsed, or names no model.
        ModelError: a model is not installed, or the models do not fit into their shares of memory.
    """
    from engine.models.store import ModelStore
    from engine.runtime.engine import AsyncPravahaEngine
    from engine.runtime.served_models import ServedModels

    configs = [engine_config(settings, progress, niceness=niceness)]
    given = {settings.model: configs[0].name}
    for name in settings.further_models:
        model = find_model(settings.model_copy(update={"model": name}), progress)
        configs.append(replace(configs[0], model=model.path, name=model.name, draft_model=None))
        given[name] = model.name
    any_installed = any_installed or settings.max_models is not None
    first = embedder(settings)

    def make(config: "EngineConfig", find_free: "FreeMemory") -> "AsyncPravahaEngine":
        own = first if config.name == configs[0].name else embedder(settings)
        store = ModelStore(settings.models)
        return AsyncPravahaEngine(config, embedder=own, models=store, find_free_memory=find_free)

    def name_of(text: str) -> str:
        """The name of a model that is given as with `--model`."""
        if text in given:
            return given[text]
        if any_installed or text == first.name or text in given.values():
            return text
        raise ConfigurationError(f"{text} is none of the models that are served.")

    models = ServedModels(
        configs,
        make,
        aliases=parse_aliases(settings.alias, name_of, primary=configs[0].name),
        max_loaded=settings.max_models,
        any_installed=any_installed,
        shares=parse_shares(settings.model_memory, name_of),
        keep_alive_s=FOR_EVER if settings.model_keep_alive is None else settings.model_keep_alive,
    )
    for served in models.all():
        served.engine.check_memory_share()
    return models


def parse_aliases(
    aliases: Sequence[str], name_of: Callable[[str], str], *, primary: str
) -> dict[str, str]:
    """Further names, each with the name of its model.

    Args:
        aliases: each `NAME=MODEL`, or `NAME` for the first model.
        name_of: returns the name of a model that is given as with `--model`.
        primary: the name of the first model.

    Raises:
        ConfigurationError: an alias cannot be parsed, is given twice, or its model is not served.
    """
    found: dict[str, str] = {}
    for text in aliases:
        alias, separator, model = (part.strip() for part in text.partition("="))
        if not alias or (separator and not model):
            raise ConfigurationError(
                f"--alias {text!r} should be NAME=MODEL, or NAME for the first."
            )
        if alias in found:
            raise ConfigurationError(f"--alias gives the name {alias} twice.")
        found[alias] = name_of(model) if separator else primary
    return found


def parse_shares(
    shares: Sequence[str],
    name_of: Callable[[str], str],
    *,
    free: Callable[[], int] = available_memory,
) -> Mapping[str, int]:
    """Most bytes of models by their names.

    Args:
        shares: each `MODEL=SIZE`, with a size such as `4GiB`, or a percentage of free memory such as `40%`.
        name_of: returns the name of a model that is given as with `--model`.
        free: returns the bytes of free memory.

    Raises:
        ConfigurationError: a share cannot be parsed, is given twice, or its model is not served.
    """
    found: dict[str, int] = {}
    for text in shares:
        model, separator, size = (part.strip() for part in text.rpartition("="))
        if not separator or not model:
            raise ConfigurationError(f"--model-memory {text!r} should be MODEL=SIZE.")
        name = name_of(model)
        if name in found:
            raise ConfigurationError(f"--model-memory gives {name} two shares.")
        found[name] = _share_bytes(size, text, free)
    return found


def _share_bytes(size: str, text: str, free: Callable[[], int]) -> int:
    try:
        if not size.endswith("%"):
            return parse_size(size)
        percent = float(size[:-1])
    except ValueError:
        percent = -1.0
    if not 0 < percent <= 100:
        raise ConfigurationError(
            f"--model-memory {text!r} should end in a size such as 4GiB or a percentage such as 40%."
        )
    try:
        return int(free() * percent / 100)
    except OSError as error:
        raise ConfigurationError(
            f"--model-memory {text!r}: free memory is unknown here, so give a size such as 4GiB."
        ) from error
