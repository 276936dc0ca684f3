"""Prints the roster and single agents."""

from collections.abc import Iterable
from itertools import groupby
from typing import Any

from rich.table import Table
from rich.text import Text

from agents.api.agent_spec import AgentSpec
from agents.model.abilities import abilities, use_of
from agents.model.profile import CapabilityProfile
from agents.plugins.registry import Registry
from app.commands.console import console
from app.runtime.model_profile import InstalledProfile


def agent_fields(spec: AgentSpec, profile: CapabilityProfile | None = None) -> dict[str, Any]:
    """An agent as JSON members; `model_use` is None if the model's profile is not known."""
    return {
        "key": spec.key,
        "category": spec.category,
        "description": spec.description,
        "tools": list(spec.tools),
        "mcp_servers": list(spec.mcp_servers),
        "detectors": list(spec.detectors),
        "output_schema": spec.output_schema,
        "requires": spec.requires.value,
        "model_use": None if profile is None else use_of(spec, profile),
        "path": None if spec.path is None else str(spec.path),
    }


def agent_details(spec: AgentSpec, registry: Registry) -> dict[str, Any]:
    """An agent with its role card, budget, rules and output schema."""
    return agent_fields(spec) | {
        "card": spec.card,
        "permission_mode": spec.permission_mode,
        "max_turns": spec.max_turns,
        "score_questions": list(spec.score_questions),
        "budget": {
            "tokens": spec.budget.tokens,
            "seconds": spec.budget.seconds,
            "tools": spec.budget.tools,
        },
        "rules": [
            {
                "detector": name,
                "id": rule.id,
                "severity": rule.severity.value,
                "cwe": rule.cwe,
                "title": rule.title,
            }
            for name in spec.detectors
            for rule in registry.detector(name).rules
        ],
        "schema": registry.outputs[spec.output_schema].model_json_schema(),
    }


def print_agents(specs: Iterable[AgentSpec], installed: InstalledProfile | None) -> None:
    """A table of agents, by category, with what each uses the installed model for."""
    profile = None if installed is None else installed.profile
    table = Table(box=None, pad_edge=False)
    table.add_column("AGENT", no_wrap=True)
    table.add_column("OUTPUT", no_wrap=True)
    if profile is not None:
        table.add_column("MODEL", no_wrap=True)
    table.add_column("WHAT IT DOES")
    count = 0
    for category, members in groupby(specs, key=lambda spec: spec.category):
        table.add_row(Text(category, style="bold"))
        for spec in members:
            count += 1
            use = [] if profile is None else [use_of(spec, profile)]
            table.add_row(Text(f"  {spec.key}"), spec.output_schema, *use, Text(spec.description))
    out = console()
    out.print(table)
    out.print(f"\n{count} agents; `pravaha agents show KEY` describes one.", highlight=False)
    if installed is not None:
        out.print(Text(f"{installed.name}: {abilities(profile)}."))


def print_agent(spec: AgentSpec, registry: Registry) -> None:
    """What one agent does."""
    facts = Table(box=None, show_header=False, pad_edge=False)
    for label, value in (
        ("Agent", spec.key),
        ("Category", spec.category),
        ("Does", spec.description),
        ("Tools", ", ".join(_tool_names(spec, registry)) or "none"),
        *([("MCP servers", ", ".join(spec.mcp_servers))] if spec.mcp_servers else []),
        ("Output", spec.output_schema),
        (
            "Model",
            f"one with the capability {spec.requires.value}; without it, what needs no model",
        ),
        ("Permissions", spec.permission_mode),
        ("Budget", _budget(spec)),
        ("Role card", spec.card),
        ("File", str(spec.path)),
    ):
        facts.add_row(Text(label, style="bold"), Text(value))
    out = console()
    out.print(facts)
    for name in spec.detectors:
        detector = registry.detector(name)
        out.print()
        out.print(Text.assemble((name, "bold"), f"  {detector.description}"))
        rules = Table(box=None, show_header=False, pad_edge=False, padding=(0, 1, 0, 2))
        for rule in detector.rules:
            cwe = "" if rule.cwe is None else f"CWE-{rule.cwe}"
            rules.add_row(rule.id, rule.severity.value, cwe, Text(rule.title))
        if detector.rules:
            out.print(rules)


def _tool_names(spec: AgentSpec, registry: Registry) -> list[str]:
    return [f"{name} (off)" if registry.tool(name).unavailable else name for name in spec.tools]


def _budget(spec: AgentSpec) -> str:
    budget = spec.budget
    return f"{budget.tokens:,} tokens, {budget.seconds:g} s, {budget.tools} tool calls"
