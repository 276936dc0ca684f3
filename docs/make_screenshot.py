"""Writes the screenshots of the README: the real application with the demo model.

    python docs/make_screenshot.py [--theme ganga] [--scene agents …]
    python docs/make_screenshot.py --coder qwen2.5-coder-1.5b-q4_k_m.gguf

The demo model writes no code: with `--coder` a model that does draws the scenes of edits and candidates. The
figures in the screenshots are measured on this machine: run it while nothing else does.
"""

import argparse
import asyncio
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import chdir
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from agents.service.run_service import RunService
from app.runtime.agents import open_run_service
from app.runtime.opening import (
    OpenClient,
    open_client,
    open_session,
    open_sources,
    wait_loaded,
)
from app.runtime.source_library import SourceLibrary
from app.settings.sources import load_settings
from app.tui.app import PravahaApp
from docs.screenshots.driven_screen import DEADLINE_S, DrivenScreen, driven
from engine.conversations.session import TreeSession

IMAGES = Path(__file__).parent / "images"
SETTINGS = {
    "kv_cache": "160MiB",
    "block_size": 16,
    "swap_bytes": 0,
    "temperature": 0.6,
    "top_p": 0.95,
    "seed": 21,
    "max_tokens": 240,
}
"""Small blocks, so that short conversations have several on the KV map; a seed and no swapped blocks, so that
answers do not depend on earlier runs."""
SHOP = """import sqlite3

from flask import Flask, request

app = Flask(__name__)
API_TOKEN = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"


@app.route("/users")
def users():
    db = sqlite3.connect("app.db")
    return db.execute("SELECT * FROM users WHERE name = '" + request.args["name"] + "'").fetchall()
"""
"""What the agents review."""
CODER_S = 900.0
"""Seconds that a wait may take with a model that writes code."""
LIBRARY = {
    "library/holds.py": '''"""Holds: who waits for a book."""

from dataclasses import dataclass, field


@dataclass
class Queue:
    """The members who wait for one book, oldest first."""

    members: list[str] = field(default_factory=list)

    def place(self, member: str) -> int:
        """Add a member; the position in the queue, from 1."""
        self.members.append(member)
        return len(self.members)

    # Members look at this often.
    def position(self, member: str) -> int | None:
        """The position in the queue, from 1; None if the member does not wait.

        >>> Queue(["ada", "bob"]).position("bob")
        2
        """
        for index, name in enumerate(self.members):
            if name == member:
                return index
        return None
''',
    "test_holds.py": """from library.holds import Queue


def test_positions_count_from_one():
    queue = Queue(["ada", "bob"])
    assert queue.position("ada") == 1
    assert queue.position("eve") is None
""",
}
"""What a coder edits."""
WORDS_TASK = (
    "write initials(name) so that initials('ada lovelace') == 'A. L.', initials('Berg, Jan van der') == "
    "'J. v. d. B.' and initials('') == ''"
)
"""The function that a coder writes in several candidates."""
CLUB = {
    "boathouse.md": """# The boathouse

## Opening hours

In summer the boathouse opens at 6:30 in the morning and closes at nightfall. In
winter it opens at 9:00 on Saturdays and Sundays only. The key for other hours hangs
in the clubhouse, behind the tide table.

## Boats

Every boat is washed with fresh water after use and is entered in the logbook with
the names of its crew. The green skiff may be taken out by members who have passed
the sea test. The sailing dinghies are booked ahead.
""",
    "safety.md": """# Safety on the water

Life jackets are worn by everybody under sixteen, and by everybody when the water is
colder than 12 degrees. Nobody goes out alone after dark. If the red flag flies at
the pier, all boats stay ashore.

## Emergencies

The radio at the pier is tuned to channel 16. Whoever sees an accident calls the
harbour master first, then the club.
""",
    "seasons.md": """# The year of the club

The season begins with the cleaning of the slipway on the last Saturday of March.
The regatta takes place on the second weekend of July; its course leads around the
lighthouse and back. In October the boats are lifted out of the water, and the
engine of the tender is serviced.
""",
}
"""The documents that are asked."""
EARLIER = (
    ("What is the capital of France?", "And of Italy?", "And of Japan?"),
    ("Explain the water cycle in three short steps.", "What is condensation?"),
    ("How do rivers form valleys?", "Name three kinds of rock."),
    ("Why is the sky blue?", "How do clouds form?", "Tell me a short story about a boat."),
)
"""Conversations that took place before the first screenshot."""


@dataclass(frozen=True, slots=True)
class Scene:
    """One screenshot.

    Attributes:
        size: columns and rows.
        title: what the screenshot shows, for people who do not see it.
        play: brings the screen into the state of the screenshot.
        coder: whether it needs a model that writes code.
    """

    size: tuple[int, int]
    title: str
    play: Callable[[DrivenScreen], Awaitable[None]]
    coder: bool = False


async def expand(screen: DrivenScreen) -> None:
    """Four answers that are being generated."""
    await screen.ask("What is photosynthesis?")
    await screen.press("shift+tab", "x", "4")
    await screen.running(words=20)


async def compare(screen: DrivenScreen) -> None:
    """Two of the answers that begin with the same words."""
    await screen.press("shift+tab", "l", "c")
    await screen.shows("part at token")


async def tokens(screen: DrivenScreen) -> None:
    """The heat map, and the alternatives of a token."""
    await screen.press("shift+tab", "t", "}", ".")
    await screen.shows("Alternatives", "%")


async def branches(screen: DrivenScreen) -> None:
    """A tree with a fork at a token, an edited message and a label."""
    await screen.press("shift+tab", "}", ".")
    await screen.shows("Alternatives", "%")
    await screen.press("down", "enter")
    await screen.begun()
    await screen.answered()
    await screen.ask("Why do plants need it?")
    await screen.press("shift+tab", "k", "k", "e")
    await screen.ask("Where in a plant does it happen?")
    await screen.press("shift+tab", "m", *"where", "enter", "ctrl+t")
    await screen.gone("tokens computed")


async def chat(screen: DrivenScreen) -> None:
    """An answer that is being generated, below a conversation with branches."""
    await screen.begin("/sampling temperature=0")
    await screen.shows("Sampling of this conversation")
    await screen.gone("Sampling of this conversation")
    await screen.ask("Write a Python function that adds two numbers.")
    await screen.begin("Explain the water cycle.")
    await screen.running(words=24)


async def kv(screen: DrivenScreen) -> None:
    """The KV map over the whole screen, while six answers share a prompt."""
    await screen.press("shift+tab", "x", "6", "f3")
    await screen.running(words=16)


async def scheduler(screen: DrivenScreen) -> None:
    """The scheduler while answers run."""
    await screen.press("shift+tab", "x", "3", "f10", "f10")
    await screen.running(words=60)
    await screen.press("f10", "shift+tab", "x", "4", "f10", "f10")
    await screen.running(words=16)


async def narrow(screen: DrivenScreen) -> None:
    """80 columns and 24 rows."""
    await screen.begin("Explain the water cycle in three short steps.")
    await screen.running(words=30)


def write_files(folder: Path, texts: Mapping[str, str]) -> None:
    """Files by their names."""
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")


def write_shop(project: Path) -> None:
    """The project that the agents review."""
    write_files(project, {"app.py": SHOP, "test_app.py": "def test_x():\n    assert True\n"})


async def agents(screen: DrivenScreen) -> None:
    """A security review whose next tool call waits for an approval."""
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder, "shop")
        write_shop(project)
        await screen.begin(f"/agents secure-code-review {project}: before the release")
        await screen.press("f4", "f4")
        await screen.shows("1 waiting for approval")
        await screen.gone("f4 shows it")
        await screen.gone("waits for your approval")


async def edit(screen: DrivenScreen) -> None:
    """The diff of an answer that corrects a function of a file."""
    await screen.ask(
        "position in @library/holds.py must count from 1. Write the method, and nothing else."
    )
    await screen.shows("d or /apply shows it")
    await screen.press("shift+tab", "d")
    await screen.shows("@@")


async def candidates(screen: DrivenScreen) -> None:
    """The candidates of a function as branches, each with what its examples say."""
    await screen.begin("/new")
    await screen.begin(f"@coder : {WORDS_TASK}")
    await screen.shows("was chosen")
    await screen.press("shift+tab")


async def cited(screen: DrivenScreen) -> None:
    """Answers from documents, with their citations."""
    await screen.begin("/new")
    await screen.begin("/sources create club")
    await screen.shows("club is empty")
    folder = Path(tempfile.gettempdir(), "boat-club")
    write_files(folder, CLUB)
    try:
        await screen.begin(f"/sources add club {folder} --attribute year=2026")
        await screen.shows("3 documents added to club")
    finally:
        shutil.rmtree(folder)
    await screen.ask("@club When does the boathouse open in summer?")
    await screen.ask("Which channel is the radio at the pier tuned to?")
    await screen.press("shift+tab")
    await screen.gone("3 documents added to club")


async def sources(screen: DrivenScreen) -> None:
    """The sources pane with the passages of the last answer."""
    await screen.press("f6", "enter")
    await screen.shows("Passages of the last answer", "seasons.md  year=2026")


# In this order: each goes on with the conversation of the one before.
SCENES = {
    "expand": Scene((116, 30), "Four answers to one question, generated side by side", expand),
    "compare": Scene((110, 26), "Two answers side by side, their differences marked", compare),
    "tokens": Scene((110, 29), "An answer tinted by surprisal, alternatives to a token", tokens),
    "branches": Scene((110, 32), "The tree of a conversation", branches),
    "chat": Scene(
        (140, 40), "Conversations and branches, the chat, the KV map and the figure", chat
    ),
    "kv": Scene((104, 34), "The KV map, live requests and events", kv),
    "scheduler": Scene((104, 38), "The plan of a step and every request over time", scheduler),
    "agents": Scene(
        (110, 26), "Agents that review a project, and a call that waits for approval", agents
    ),
    "cited": Scene((110, 28), "Answers from documents, with citations that open", cited),
    "sources": Scene((118, 24), "Collections, and the passages of the last answer", sources),
    "edit": Scene((112, 34), "The diff of an answer, before it is applied", edit, coder=True),
    "candidates": Scene(
        (140, 40),
        "Candidates of a function as branches with their verdicts",
        candidates,
        coder=True,
    ),
    "narrow": Scene((80, 24), "The chat on a terminal of 80 columns and 24 rows", narrow),
}


def converse(session: TreeSession) -> None:
    """Have the earlier conversations, and open an empty one."""
    for questions in EARLIER:
        session.conversations.open_new()
        for question in questions:
            session.messages.send(question)
            while session.answers.generating:
                session.pump()
                time.sleep(0.01)
    session.conversations.open_new()


async def take(
    theme: str,
    names: Sequence[str],
    opened: OpenClient,
    session: TreeSession,
    run_service: RunService,
    library: SourceLibrary,
) -> None:
    """Play the scenes one after the other, in one conversation, and write a screenshot of each."""
    for name in names:
        scene, began = SCENES[name], time.monotonic()
        app = PravahaApp(
            opened.client,
            session,
            version=metadata.version("pravaha"),
            theme=theme,
            run_service=run_service,
            sources=library,
            edit_root=Path.cwd(),
        )
        deadline_s = CODER_S if scene.coder else DEADLINE_S
        async with driven(app, opened.client, session, scene.size, deadline_s=deadline_s) as screen:
            await scene.play(screen)
            await screen.still()
            screenshot = screen.screenshot(f"Pravāha: {scene.title}")
            await screen.answered()
        (IMAGES / f"{name}.svg").write_text(screenshot, encoding="utf-8")
        print(f"{name}.svg: {len(screenshot) / 1e3:.0f} kB, {time.monotonic() - began:.1f} s")


def main() -> None:
    """Write the screenshots."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--theme", default="ganga")
    parser.add_argument("--scene", choices=SCENES, action="append", help="draw these only")
    parser.add_argument("--coder", metavar="MODEL", help="draw the scenes that need this model")
    arguments = parser.parse_args()
    os.environ.pop("NO_COLOR", None)
    with tempfile.TemporaryDirectory() as folder:
        coder = arguments.coder is not None
        chosen = {"model": os.path.abspath(arguments.coder)} if coder else {}
        settings = load_settings(SETTINGS | {"data_dir": Path(folder)} | chosen)
        project = Path(folder, "project")
        write_files(project, LIBRARY)
        with (
            chdir(project),
            open_client(settings) as opened,
            open_sources(settings, opened.engine) as library,
            open_session(settings, opened.client, resume=False, passages=library) as session,
        ):
            opened.start()
            wait_loaded(opened.client)
            if not coder:
                converse(session)
            IMAGES.mkdir(exist_ok=True)
            names = arguments.scene or [name for name in SCENES if SCENES[name].coder is coder]
            run_service = open_run_service(settings, opened.engine)
            try:
                asyncio.run(take(arguments.theme, names, opened, session, run_service, library))
            finally:
                run_service.close()


if __name__ == "__main__":
    main()
