"""Models, the memory they need, and the optional executors."""

from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import TYPE_CHECKING

from app.doctor.facts import Fact, Section
from app.settings.options import DEMO_MODEL
from app.settings.settings import Settings
from app.text.byte_size import format_size
from engine.api.errors import ModelError

if TYPE_CHECKING:
    from engine.runtime.loading import Opened


def memory(settings: Settings) -> Section:
    """Free memory, and what the selected model and its KV pool take of it."""
    from engine.memory.host import available_memory

    try:
        available = available_memory()
    except OSError as error:
        advice = "set the KV pool's size with --kv-cache."
        free = Fact("available", "available", None, str(error), "problem", advice)
    else:
        free = Fact("available", "available", available, format_size(available))
    return Section("memory", "Memory", (free, *_model(settings)))


def _model(settings: Settings) -> tuple[Fact, ...]:
    """What the selected model takes, and its KV pool; a problem if it does not fit."""
    from engine.models.store import ModelStore
    from engine.runtime.loading import open_from_disk, open_with_headers

    label = f"KV pool of {settings.model}"
    try:
        model = ModelStore(settings.models).get(settings.model)
    except (ModelError, OSError) as error:
        text = "unknown until there is a model"
        return (Fact("kv_pool", label, None, text, "note", f"{error}."),)
    try:
        draft = settings.draft_model and ModelStore(settings.models).get(settings.draft_model).path
        config = settings.engine_config(model.path, model.name, draft or None)
        opened = open_with_headers(config, open_from_disk)
    except (ModelError, OSError) as error:
        return (Fact("kv_pool", label, None, "none", "problem", str(error)),)
    memory, pool, notes = opened.memory, opened.kv_cache, opened.model.tokenizer.notes
    loaded = Fact(
        "model",
        settings.model if opened.draft is None else f"{settings.model}, {opened.draft.model.name}",
        memory.weight_bytes + memory.work_bytes,
        f"{format_size(memory.weight_bytes)} of weights in {memory.weight_format}, "
        f"{format_size(memory.work_bytes)} of work buffers{_experts(opened)}",
        "note" if notes else "ok",
        " ".join(notes),
    )
    text = (
        f"{format_size(pool.pool_bytes)}: {pool.num_blocks} blocks of {pool.block_size} tokens, "
        f"{opened.kv_dtype}; context {opened.max_model_len} tokens"
    )
    if pool.num_state_slots:
        text += f"; {pool.num_state_slots} recurrent states of {format_size(pool.state_bytes)}"
    if pool.num_window_blocks:
        text += f"; {pool.num_window_blocks} window blocks, since layers keep {memory.window} tokens only"
    return loaded, Fact("kv_pool", label, pool.pool_bytes, text)


def _experts(opened: "Opened") -> str:
    """What of the weights a token uses, if it does not use all, and whether the others stay on disk."""
    active = opened.memory.active_bytes
    if active is None:
        return ""
    text = f"; {format_size(active)} of the weights are active"
    return f"{text}, other experts are read from disk" if opened.needs_weight_cache else text


def _sampling(settings: Settings) -> Fact:
    """The selected model's own sampling parameters."""
    from engine.executors.open_model import open_model
    from engine.models.store import ModelStore

    label = "sampling"
    if settings.generation_config == "none":
        return Fact("sampling", label, [], "the model's own defaults are off")
    try:
        model = ModelStore(settings.models).get(settings.model)
        config = settings.engine_config(model.path, model.name)
        defaults = open_model(model.path, config).generation_defaults
    except (ModelError, OSError) as error:
        return Fact("sampling", label, None, "unknown until there is a model", "note", f"{error}.")
    values = [f"{name} {value:g}" for name, value in defaults.values().items()]
    text = "the model has no defaults of its own"
    if values:
        text = f"{', '.join(values)} ({defaults.source})"
    return Fact("sampling", label, values, text)


def models(settings: Settings) -> Section:
    """The installed models and the selected one."""
    from engine.models.store import ModelStore

    store = ModelStore(settings.models)
    try:
        installed = store.list()
    except ModelError as error:
        fact = Fact("installed", "installed", None, str(error), "problem", "remove that record.")
        return Section("models", "Models", (fact, *_executors()))
    names = [model.name for model in installed]
    facts = [Fact("installed", "installed", names, ", ".join(names) or "none")]
    if settings.model not in names:
        fetched = settings.model == DEMO_MODEL
        try:
            path = str(store.get(settings.model).path)
            facts.append(Fact("chosen", "chosen", path, path))
        except ModelError as error:
            facts.append(
                Fact(
                    "chosen",
                    "chosen",
                    settings.model,
                    f"{settings.model}, which is not installed",
                    "note" if fetched else "problem",
                    f"`pravaha models add {DEMO_MODEL}` fetches it, and so does the first start."
                    if fetched
                    else f"{error}.",
                )
            )
    else:
        facts.append(Fact("chosen", "chosen", settings.model, settings.model))
    return Section("models", "Models", (*facts, _sampling(settings), *_executors()))


def _executors() -> tuple[Fact, ...]:
    """Whether the libraries of the optional executors are installed; never imports them."""
    return (
        _library("torch", "GPUs and further architectures", extra="torch"),
        _library("onnxruntime", "models in ONNX", extra="onnx"),
    )


def _library(name: str, adds: str, *, extra: str) -> Fact:
    if find_spec(name) is None:
        return Fact(
            name,
            name,
            None,
            "not installed, and not needed for native models",
            "note",
            f"`pip install 'pravaha[{extra}]'` adds {adds}.",
        )
    try:
        found = version(name)
    except PackageNotFoundError:
        found = "of unknown version"
    return Fact(name, name, found, f"{found} (imported only when chosen)")
