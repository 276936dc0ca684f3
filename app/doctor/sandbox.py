"""The doctor's section on the sandbox of agents' commands."""

import asyncio

from agents.sandbox.choice import open_sandbox
from agents.sandbox.sandbox import SandboxUnavailable
from app.doctor.facts import Fact, Section
from app.settings.settings import Settings


def sandbox(settings: Settings) -> Section:
    """Which sandbox works, and its layers, as found by running a command in it."""
    try:
        found = asyncio.run(open_sandbox(settings.sandbox))
    except SandboxUnavailable as error:
        none = Fact("name", "sandbox", None, "none: agents cannot run commands", "note", str(error))
        return Section("sandbox", "Sandbox", (none,))
    layers = [layer.value for layer in found.active_layers]
    advice = " ".join(found.notes)
    return Section(
        "sandbox",
        "Sandbox",
        (
            Fact("name", "sandbox", found.name, found.name),
            Fact(
                "layers",
                "layers",
                list(layers),
                ", ".join(layers),
                "note" if advice else "ok",
                advice,
            ),
        ),
    )
