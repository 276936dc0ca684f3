"""Settings as command-line options: one table, used by every command that takes them.

`@setting_options("engine", "sampling")` adds the groups' options to a command and passes the given
ones to it as one dictionary, `flags`, for `load_settings`. The table holds names and types only:
ranges are checked by `app.settings.settings`, which is not imported for `--help`.
"""

import functools
import inspect
from collections.abc import Callable
from typing import Annotated, Any

import typer

from app.settings.help import HELP

GROUPS: dict[str, dict[str, type]] = {
    "engine": {
        "model": str,
        "ctx": int,
        "kv_cache": str,
        "weights": str,
        "kv_dtype": str,
        "block_size": int,
        "threads": int,
        "dispatch": str,
        "executor": str,
        "device": str,
        "dtype": str,
        "attention": str,
        "cuda_graphs": bool,
        "dummy_weights": bool,
        "max_num_seqs": int,
        "max_num_batched_tokens": int,
        "generation_config": str,
        "max_queue": int,
        "prefix_caching": bool,
        "speculation": bool,
        "draft_model": str,
        "scheduling_policy": str,
        "batch_former": str,
        "step_target_ms": float,
        "swap_bytes": str,
        "weight_cache_bytes": str,
    },
    "sampling": {
        "temperature": float,
        "top_k": int,
        "top_p": float,
        "min_p": float,
        "repetition_penalty": float,
        "presence_penalty": float,
        "frequency_penalty": float,
        "dry_multiplier": float,
        "dry_base": float,
        "dry_allowed_length": int,
        "dry_penalty_last_n": int,
        "seed": int,
        "max_tokens": int,
        "stop_repetition": bool,
        "system": str,
    },
    "server": {
        "host": str,
        "port": int,
        "allowed_hosts": str,
        "strict_fields": bool,
        "max_body_bytes": str,
        "max_upload_bytes": str,
        "drain_seconds": float,
        "agents_root": str,
    },
    "guardrails": {"guardrails_mode": str},
    "agents": {"sandbox": str, "allow": str, "http_domains": str},
    "runs": {"guardrails_agents": bool, "guardrails_judge": bool, "memory_episodes": str},
    "remote": {"attach": str, "api_key": str},
    "screen": {"theme": str, "avatar": str, "charset": str, "notify": str, "mouse": bool},
}
"""Options by subject; each option is in one group."""

_PANELS = {
    "engine": "Model and engine",
    "sampling": "Sampling",
    "server": "Server",
    "guardrails": "Guardrails",
    "agents": "Agents",
    "runs": "Agents",
    "remote": "Remote engine",
    "screen": "Screen",
}
_SWITCHES = {
    "cuda_graphs",
    "prefix_caching",
    "speculation",
    "stop_repetition",
    "mouse",
    "guardrails_agents",
}
"""Options that are on by default and therefore also have a `--no-` form."""
_LIST_SHORT = {"model": "-m"}


def setting_options(*groups: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorate a command that takes a keyword argument `flags: dict[str, Any]`.

    Typer reads a command's signature, in which the decorated one has a parameter for each option.
    """
    options = {name: kind for group in groups for name, kind in GROUPS[group].items()}

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(command)
        def with_flags(*args: Any, **values: Any) -> Any:
            flags = {name: values.pop(name) for name in options}
            given = {name: value for name, value in flags.items() if value is not None}
            return command(*args, flags=given, **values)

        own = inspect.signature(command, eval_str=True).parameters.values()
        parameters = [p for p in own if p.name != "flags"]
        for group in groups:
            parameters += [_parameter(name, kind, group) for name, kind in GROUPS[group].items()]
        with_flags.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        with_flags.__annotations__ = {p.name: p.annotation for p in parameters}
        return with_flags

    return decorate


def refuse_groups(flags: dict[str, Any], *groups: str, reason: str) -> None:
    """Refuse options that would have no effect.

    Raises:
        typer.BadParameter: an option of these groups was given.
    """
    for group in groups:
        for name in GROUPS[group]:
            if name in flags:
                raise typer.BadParameter(f"--{name.replace('_', '-')} {reason}")


def refuse_remote_contradictions(flags: dict[str, Any], *, serving: bool = False) -> None:
    """Refuse engine options for a remote engine, and a key without a server.

    Raises:
        typer.BadParameter: such an option was given.
    """
    if "attach" in flags:
        refuse_groups(flags, "engine", reason="cannot be set with --attach: the server decides")
    elif "api_key" in flags and not serving:
        raise typer.BadParameter("--api-key needs --attach or --serve")


def _parameter(name: str, kind: type, group: str) -> inspect.Parameter:
    flag = f"--{name.replace('_', '-')}"
    if name in _SWITCHES:
        flag = f"{flag}/--no{flag[1:]}"
    option = typer.Option(
        flag,
        *filter(None, [_LIST_SHORT.get(name)]),
        help=HELP[name],
        rich_help_panel=_PANELS[group],
    )
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=None,
        annotation=Annotated[kind | None, option],
    )
