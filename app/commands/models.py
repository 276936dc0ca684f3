"""`pravaha models`: list, add, verify and remove the models on this machine."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from app.commands.fetch_bar import fetch_bar
from app.commands.outcome import one_sentence_errors

if TYPE_CHECKING:
    from rich.console import Console

    from engine.api.config import WeightMode
    from engine.executors.memory_plan import MemoryPlan
    from engine.executors.weight_cache import CachedWeights, WeightCache
    from engine.models.record import InstalledModel
    from engine.models.store import ModelStore
    from engine.text.tokenizer import Tokenizer

models_app = typer.Typer(
    no_args_is_help=True, help="List, add, verify and remove the models on this machine."
)

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
NameArgument = Annotated[str, typer.Argument(help="The model's name, as `models list` shows it.")]


@models_app.command("list")
def list_models(as_json: JsonOption = False) -> None:
    """Show every installed model."""
    with one_sentence_errors():
        installed = _store().list()
    if as_json:
        _print_json([model.to_json() | {"format": _format(model)} for model in installed])
    elif not installed:
        print("No models are installed: `pravaha models add smollm2` fetches a small one.")
    else:
        _print_table(installed)


@models_app.command()
def add(
    source: Annotated[
        str,
        typer.Argument(
            help="smollm2, minilm (embeddings), a GGUF or ONNX file, a model directory, a Hugging Face id "
            "(org/name, or org/name:CHOICE if it has several GGUF files), an address of its pages, or a link "
            "to a GGUF file on any server."
        ),
    ],
    name: Annotated[
        str | None, typer.Option(help="Name for the model; made from the source unless given.")
    ] = None,
    sha256: Annotated[
        str | None,
        typer.Option("--sha256", help="The digest that the model's only file must have."),
    ] = None,
) -> None:
    """Install a model. Local files are linked, not copied.

    CHOICE is a quantization such as Q4_K_M, a file, or a folder of the repository: org/name:Q4_K_M,
    org/name:model-Q4_K_M.gguf or org/name:Q4_K_M/model.gguf. Of a split model, all parts are fetched.
    After an interrupted download, the same command goes on where it ended.
    """
    with one_sentence_errors():
        store = _store()
        with fetch_bar() as report:
            model = store.add(source, name=name, sha256=sha256, progress=report)
    print(f"{model.name} is ready: {model.path}")


@models_app.command()
def show(
    name: Annotated[str, typer.Argument(help="A model's name, or a path.")],
    as_json: JsonOption = False,
    weights: Annotated[
        str, typer.Option(help="Weights in memory: stored, q8 or q4, as for loading.")
    ] = "stored",
) -> None:
    """Show a model's facts, its origin and the memory it takes with otherwise default settings."""
    from dataclasses import asdict

    from engine.api.config import EngineConfig
    from engine.executors.open_model import open_model
    from engine.models.layer_groups import describe_layers
    from engine.models.spec import ModelSpec
    from engine.runtime.loading import active_parameters, context_length, resolve_kv_dtype
    from engine.text.tool_calls.choosing import form_of_template
    from engine.text.tool_calls.thresholds import thresholds_key, thresholds_of

    mode = _weight_mode(weights)
    with one_sentence_errors():
        model = _store().get(name)
        if _is_encoder(model):
            if mode != "stored":
                raise typer.BadParameter(f"--weights {mode} does not apply to embedding models")
            _show_encoder(model, as_json=as_json)
            return
        cache = _weight_cache()
        config = EngineConfig(
            model.path,
            model.name,
            weights=mode,
            weight_cache_bytes=cache.limit,
            weight_cache_dir=cache.folder,
        )
        opened = open_model(model.path, config)
        kv_dtype = resolve_kv_dtype(opened, config)
        memory = opened.plan_memory(
            config, kv_dtype=kv_dtype, max_model_len=context_length(opened, config)
        )
        kv_token_bytes = memory.block_bytes / config.block_size
        packed = cache.entries_of(model.path)
    spec, template = opened.spec, opened.tokenizer.tool_template
    active = active_parameters(opened)
    key = thresholds_key(spec.architecture, opened.parameters, spec.vocab_size, template)
    is_measured = thresholds_of(key) is not None
    facts: dict[str, object] = {
        "title": opened.name,
        "architecture": opened.spec.architecture,
        "parameters": opened.parameters,
        "active_parameters": opened.parameters if active is None else active,
        "weight_format": opened.weight_format,
        "context_length": opened.spec.context_length,
        "vocab_size": opened.spec.vocab_size,
        "chat_template": opened.tokenizer.has_chat_template,
        "tool_call_form": form_of_template(template).name,
        "tool_decision": "auto" if is_measured else "model",
        "notes": opened.tokenizer.notes,
        "file_bytes": opened.file_bytes,
        "weights": mode,
        "weight_bytes": memory.weight_bytes,
        "active_bytes": memory.weight_bytes if active is None else memory.active_bytes,
        "resident_bytes": memory.resident_bytes,
        "memory_format": memory.weight_format,
        "work_bytes": memory.work_bytes,
        "kv_dtype": kv_dtype,
        "kv_bytes_per_token": kv_token_bytes,
        "window": memory.window,
        "window_kv_bytes_per_token": memory.window_block_bytes / config.block_size,
        "state_bytes": memory.state_bytes,
        "packed_files": [{"path": str(entry.path), "bytes": entry.size} for entry in packed],
    }
    if as_json:
        _print_json(model.to_json() | facts | {"spec": asdict(opened.spec)})
        return
    shown = {
        **_origin(model),
        "Title": opened.name,
        "Architecture": spec.architecture,
        "Layers": describe_layers(spec)
        if isinstance(spec, ModelSpec)
        else f"{spec.num_layers} layers",
        "Parameters": f"{opened.parameters / 1e6:,.1f} M in {opened.weight_format}"
        + (f" (total {_count(opened.parameters)}, active {_count(active)})" if active else ""),
        "Context": f"{opened.spec.context_length:,} tokens",
        "Chat template": _chat_template(opened.tokenizer),
        "Tool calls": f"in the form {facts['tool_call_form']}; decided "
        + ("by measured probabilities" if is_measured else "by what the model writes"),
        "Size": _megabytes(opened.file_bytes),
        "In memory": f"{_megabytes(memory.weight_bytes)} of weights in {memory.weight_format}, "
        f"{_megabytes(memory.work_bytes)} of work buffers",
        **_of_experts(memory),
        "Packed on disk": _packed_files(packed, is_native=isinstance(opened.spec, ModelSpec)),
        "KV cache": f"{kv_token_bytes:,.0f} bytes per token in {kv_dtype}"
        + (
            f", {memory.window_block_bytes / config.block_size:,.0f} of them for the last "
            f"{memory.window:,} tokens only"
            if memory.window
            else ""
        )
        + (
            f", {_megabytes(memory.state_bytes)} of state per request" if memory.state_bytes else ""
        ),
        "SHA-256": _digests(model),
    }
    notes = opened.tokenizer.notes
    _print_facts(shown | ({"Notes": "\n".join(notes)} if notes else {}))


def _of_experts(memory: "MemoryPlan") -> dict[str, object]:
    """What a token uses of a model with experts, and what of it has to be in memory; nothing for others."""
    if memory.active_bytes is None:
        return {}
    rest = (
        f"all experts stay in memory: {memory.shortage}"
        if memory.shortage
        else "other experts may stay on disk and are read when they are chosen"
    )
    return {"Active": f"{_megabytes(memory.active_bytes)} of weights per token; {rest}"}


def _count(parameters: int) -> str:
    if parameters < 1e9:
        return f"{parameters / 1e6:,.1f} M"
    return f"{parameters / 1e9:,.1f} B"


def _chat_template(tokenizer: "Tokenizer") -> str:
    if tokenizer.has_chat_template:
        return "its own"
    return "none: the model continues text" if tokenizer.continues_text else "none: ChatML is used"


def _weight_mode(text: str) -> "WeightMode":
    """The weight mode called `text`.

    Raises:
        typer.BadParameter: there is none.
    """
    from typing import get_args

    from engine.api.config import WeightMode

    modes: tuple[WeightMode, ...] = get_args(WeightMode)
    for mode in modes:
        if mode == text:
            return mode
    raise typer.BadParameter(f"--weights must be one of {', '.join(modes)}, not {text!r}")


def _is_encoder(model: "InstalledModel") -> bool:
    from engine.executors.open_model import is_encoder
    from engine.files.json_file import read_json

    config = model.path / "config.json"
    return config.is_file() and is_encoder(read_json(config))


def _show_encoder(model: "InstalledModel", *, as_json: bool) -> None:
    """Show the facts of an embedding model."""
    from engine.embedding.text_encoder import TextEncoder

    encoder = TextEncoder(model.path, name=model.name)
    if as_json:
        facts = {"dimensions": encoder.dimensions, "max_tokens": encoder.max_tokens}
        _print_json(model.to_json() | {"architecture": "bert"} | facts)
        return
    _print_facts(
        {
            **_origin(model),
            "Architecture": "bert, an encoder: it computes embeddings and generates no text",
            "Dimensions": encoder.dimensions,
            "Context": f"{encoder.max_tokens:,} tokens",
            "Size": _megabytes(model.size),
            "SHA-256": _digests(model),
        }
    )


def _origin(model: "InstalledModel") -> dict[str, object]:
    source = f"{model.source} {model.revision}".strip()
    return {
        "Name": model.name,
        "Path": model.path,
        "From": f"{model.origin}: {source}",
        "Added": model.added_at or "not in the store",
    }


def _packed_files(entries: "list[CachedWeights]", *, is_native: bool) -> str:
    if not is_native:
        return "never: only the native executor keeps them"
    files = "\n".join(f"{_megabytes(entry.size)} in {entry.path}" for entry in entries)
    return files or "not yet: the first load writes them, if they take 128 MiB or more"


def _digests(model: "InstalledModel") -> str:
    files = "\n".join(f"{file.sha256}  {file.name}" for file in model.files)
    return files or "not recorded"


@models_app.command()
def verify(name: NameArgument) -> None:
    """Compare a model's files, and its packed weights, with the digests that were recorded."""
    with one_sentence_errors():
        store = _store()
        with fetch_bar() as report:
            problems = list(store.verify(name, progress=report))
        problems += _weight_cache().verify(store.get(name).path)
    for problem in problems:
        print(problem, file=sys.stderr)
    if problems:
        raise typer.Exit(1)
    print(f"{name}: every file matches its digest.")


@models_app.command()
def remove(name: NameArgument) -> None:
    """Remove a model and its packed weights. Linked local files are not deleted."""
    with one_sentence_errors():
        model = _store().remove(name)
        cache = _weight_cache()
        cache.remove(cache.entries_of(model.path))
    kept = f"; {model.path} was linked and is kept" if model.origin == "linked" else ""
    print(f"{model.name} is removed{kept}.")


@models_app.command()
def clear_cache() -> None:
    """Remove the packed weights of all models, and what interrupted downloads left.

    The next load of a model packs its weights again.
    """
    with one_sentence_errors():
        removed = _weight_cache().clear()
        left = _store().clear_interrupted()
    print(f"{_megabytes(removed)} of packed weights are removed.")
    if left:
        print(f"{_megabytes(left)} of interrupted downloads are removed.")


def _weight_cache() -> "WeightCache":
    from app.settings.sources import load_settings
    from engine.executors.weight_cache import WeightCache

    settings = load_settings()
    return WeightCache(settings.weight_cache, settings.weight_cache_bytes)


def _store() -> "ModelStore":
    from app.settings.sources import load_settings
    from engine.models.store import ModelStore

    return ModelStore(load_settings().models, check=_check_usable)


def _check_usable(path: Path) -> None:
    """Open a model's headers; raises ModelError."""
    from engine.executors.open_model import open_model  # loads the Rust core

    open_model(path)


def _print_json(value: object) -> None:
    print(json.dumps(value, ensure_ascii=False, indent=2))


def _print_table(installed: "list[InstalledModel]") -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False)
    table.add_column("NAME")
    table.add_column("SIZE", justify="right")
    table.add_column("FORMAT")
    table.add_column("FROM")
    table.add_column("PATH", overflow="fold")
    for model in installed:
        cells = (model.name, _megabytes(model.size), _format(model), model.source, str(model.path))
        table.add_row(*(Text(cell) for cell in cells))
    _console().print(table)


def _format(model: "InstalledModel") -> str:
    from engine.models.format_name import format_name

    return format_name(model.path)


def _print_facts(facts: dict[str, object]) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, show_header=False, pad_edge=False)
    for label, value in facts.items():
        table.add_row(Text(label, style="bold"), Text(str(value)))
    _console().print(table)


def _console() -> "Console":
    """A console that wraps lines in a terminal only: programs read a pipe by lines."""
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else 10_000)


def _megabytes(count: int) -> str:
    return f"{count / 1e6:,.0f} MB"
