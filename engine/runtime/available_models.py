"""Lists the installed models with the facts that a choice between them needs.

Cost: the headers and the vocabulary of each model are read, up to 0.3 s a model. Call it off the event loop.
"""

from dataclasses import replace

from engine.api.available_model import AvailableModel
from engine.api.config import EngineConfig
from engine.api.errors import ModelError
from engine.models.record import InstalledModel
from engine.runtime.loading import (
    FreeMemory,
    ModelOpener,
    Opened,
    active_parameters,
    memory_after_unloading,
    pool_of,
    read_headers,
)


def describe_installed(
    model: InstalledModel,
    config: EngineConfig,
    opener: ModelOpener,
    loaded: Opened | None,
    find_free: FreeMemory,
) -> AvailableModel:
    """Facts of an installed model, and why it cannot replace the loaded one, if it cannot.

    Args:
        model: the model.
        config: the settings of the engine; those of the model are replaced.
        opener: reads headers and vocabulary.
        loaded: the model that would be unloaded first; None if there is none.
        find_free: returns the free memory.
    """
    wanted = replace(config, model=model.path, name=model.name)
    facts = AvailableModel(
        model.name,
        model.size,
        loaded=loaded is not None and (config.model, config.name) == (model.path, model.name),
    )
    try:
        headers = read_headers(wanted, opener)
    except ModelError as error:
        return replace(facts, problem=str(error))
    facts = replace(
        facts,
        architecture=headers.model.spec.architecture,
        parameters=headers.model.parameters,
        weight_format=headers.model.weight_format,
        context_length=headers.max_model_len,
        active_parameters=active_parameters(headers.model),
    )
    if facts.loaded:
        return facts
    try:
        available = memory_after_unloading(headers.model, wanted, loaded, find_free)
        pool_of(headers, wanted, available=available)
    except ModelError as error:
        return replace(facts, problem=str(error))
    return facts
