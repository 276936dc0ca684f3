"""Replays a recorded run for `pravaha agents replay`, and prints where its events differ."""

import asyncio
import json
import sys
from contextlib import ExitStack, closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

from agents.service.recording import Recording, read_recording
from agents.service.replay import Difference, first_difference, replay
from app.commands.agents.command import EXIT_FAILED
from app.commands.agents.progress import show_steps
from app.runtime.agents import open_model_client, open_registry, open_roster, open_run_guard
from app.runtime.opening import embedder
from app.settings.sources import load_settings
from app.text.safe_text import safe_text
from engine.api.errors import PravahaError

EXIT_DIFFERS = 1


def replay_run(folder: Path, flags: dict[str, Any], *, as_json: bool) -> int:
    """Replay, compare and print; the exit status."""
    try:
        recording = read_recording(folder)
        count, difference = asyncio.run(_replay(recording, flags))
    except (PravahaError, OSError) as error:
        print(f"pravaha: {error}", file=sys.stderr)
        return EXIT_FAILED
    if as_json:
        found = None if difference is None else asdict(difference)
        print(json.dumps({"events": count, "difference": found}, ensure_ascii=False, indent=2))
    elif difference is None:
        print(f"{recording.key}: {count} events, the same as recorded.")
    else:
        print(f"{recording.key}: event {difference.number} is not as recorded.")
        for name, event in (("recorded", difference.recorded), ("replayed", difference.replayed)):
            shown = "none" if event is None else json.dumps(event, ensure_ascii=False)
            print(f"  {name}: {safe_text(shown)[:2_000]}")
    return 0 if difference is None else EXIT_DIFFERS


async def _replay(recording: Recording, flags: dict[str, Any]) -> tuple[int, Difference | None]:
    registry = open_registry(load_settings(flags))
    roster = open_roster(registry, Path(recording.project) if recording.project else None)
    with ExitStack() as stack:
        client = None
        if recording.model:
            client = await asyncio.to_thread(stack.enter_context, open_model_client(flags))
        settings = load_settings(flags)
        encoder = stack.enter_context(closing(embedder(settings)))
        guard = open_run_guard(settings, registry, encoder, client)
        events = await replay(recording, registry, roster, client, guard=guard, on_event=show_steps)
    return len(events), first_difference(recording.events, events)
