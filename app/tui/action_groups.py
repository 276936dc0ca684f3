"""`ActionGroups`: every group of actions of a screen, each with the objects that it uses.

`perform('tree', 'prune')` in the key table calls `prune` of the group `tree`.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from agents.service.run_service import RunService
from app.runtime.chat_tools import ChatTools
from app.runtime.model_hub import ModelHub
from app.runtime.project_tests import ProjectTests
from app.runtime.source_library import SourceLibrary
from app.settings.shown_setting import ShownSetting
from app.tui.actions.agents import AgentActions
from app.tui.actions.archive import ArchiveActions
from app.tui.actions.compare import CompareActions
from app.tui.actions.context import ContextActions
from app.tui.actions.conversations import ConversationActions
from app.tui.actions.documents import DocumentActions
from app.tui.actions.draft import DraftActions
from app.tui.actions.edits import EditActions
from app.tui.actions.files import FileActions
from app.tui.actions.fork_at_token import ForkAtToken
from app.tui.actions.go import GoActions
from app.tui.actions.guarded import guarded
from app.tui.actions.held_message import HeldMessage
from app.tui.actions.hub import HubActions
from app.tui.actions.images import ImageActions
from app.tui.actions.jump import JumpActions
from app.tui.actions.kv import KvActions
from app.tui.actions.listing import ListActions
from app.tui.actions.merge import MergeActions
from app.tui.actions.models import ModelActions
from app.tui.actions.other_model import OtherModel
from app.tui.actions.sampling import SamplingActions
from app.tui.actions.scheduler import SchedulerActions, TimeActions
from app.tui.actions.search import SearchActions
from app.tui.actions.serving import EngineServer, ServingActions
from app.tui.actions.settings import SettingActions
from app.tui.actions.sources import SourceActions
from app.tui.actions.themes import ThemeActions
from app.tui.actions.thoughts import ThoughtActions
from app.tui.actions.tokens import TokenActions
from app.tui.actions.tools import ToolActions
from app.tui.actions.tree import TreeActions
from app.tui.chat_screen import ChatScreen
from app.tui.draft_keeper import DraftKeeper
from app.tui.fork_costs import ForkCosts
from app.tui.fork_prices import ForkPrices
from app.tui.glyphs import Glyphs
from app.tui.marks import Marks
from app.tui.screen_layout import ScreenLayout
from app.tui.selection import Selection
from app.tui.terminal import Terminal
from engine.retrieval.parsing.document_reader import DocumentReader
from engine.retrieval.parsing.image_reader import ImageReader


class ActionGroups:
    """The groups; the arguments are those of `PravahaApp` and the objects that it composes."""

    def __init__(
        self,
        screen: ChatScreen,
        layout: ScreenLayout,
        selection: Selection,
        terminal: Terminal,
        *,
        themes: ThemeActions,
        marks: Marks,
        drafts: DraftKeeper,
        fork_prices: ForkPrices,
        fork_costs: ForkCosts,
        glyphs: Glyphs,
        keymap: Mapping[str, str],
        go_in_time: Callable[[float | None], bool],
        wall_clock: Callable[[], float],
        run_service: RunService | None,
        chat_tools: ChatTools | None,
        edit_root: Path | None,
        project_tests: ProjectTests,
        sources: SourceLibrary | None,
        image_reader: ImageReader | None,
        engine_server: EngineServer | None,
        server: str | None,
        settings: Sequence[ShownSetting],
        model_hub: ModelHub | None,
        on_model: Callable[[str], None],
    ) -> None:
        self._screen = screen
        self._replayed = run_service is None and sources is None
        self.themes = themes
        self.context = ContextActions(screen)
        self.jump = JumpActions(screen, layout)
        self.kv = KvActions(screen, selection, layout, marks)
        self.listing = ListActions(screen)
        self.merge = MergeActions(screen, selection, fork_prices)
        self.models = ModelActions(screen, on_model)
        self.hub = HubActions(screen, self.models, model_hub, glyphs)
        self.models.offer_download(None if model_hub is None else self.hub.open)
        self.sampling = SamplingActions(screen)
        self.settings = SettingActions(screen, self.sampling, self.models, themes, settings)
        self.scheduler = SchedulerActions(screen)
        self.serving = ServingActions(screen, engine_server, attached_to=server)
        self.time = TimeActions(go_in_time, keymap)
        self.agents = AgentActions(screen, layout, self.listing, run_service)
        self.archive = ArchiveActions(screen, layout, drafts, self.listing)
        self.conversations = ConversationActions(
            screen, layout, drafts, listing=self.listing, archive=self.archive
        )
        self.search = SearchActions(screen, layout, self.conversations, wall_clock)
        self.files = FileActions(screen, selection, terminal)
        self.held = HeldMessage(screen)
        self.tools = ToolActions(screen, selection, glyphs, keymap, chat_tools)
        self.edits = EditActions(
            screen, selection, glyphs, keymap, root=edit_root, tests=project_tests
        )
        self.documents = DocumentActions(
            screen, selection, self.files, glyphs, keymap, DocumentReader(), self.held, self.tools
        )
        self.draft = DraftActions(screen, self.files, self.documents, glyphs)
        self.images = ImageActions(
            screen, self.files, image_reader, attached=server is not None, held=self.held
        )
        self.sources = SourceActions(
            screen,
            selection,
            layout,
            files=self.files,
            terminal=terminal,
            glyphs=glyphs,
            keymap=keymap,
            library=sources,
        )
        self.thoughts = ThoughtActions(screen, selection, glyphs, keymap)
        self.tokens = TokenActions(screen, selection, layout, glyphs=glyphs, keymap=keymap)
        self.fork_at_token = ForkAtToken(screen, self.tokens, glyphs)
        self.tree = TreeActions(
            screen,
            selection,
            layout,
            fork_at_token=self.fork_at_token,
            fork_costs=fork_costs,
            documents=self.documents,
        )
        self.other_model = OtherModel(screen, selection, self.models, self.tree)
        self.go = GoActions(screen, selection, layout, self.tree, glyphs)
        self.compare = CompareActions(
            screen,
            selection,
            layout,
            marks=marks,
            tokens=self.tokens,
            fork_prices=fork_prices,
            keymap=keymap,
        )

    async def known_names(self) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
        """The agents and pipelines, and the collections, that a message may name; None in a replay."""
        if self._replayed:
            return None
        return await self.agents.names(), await self.sources.current_names()

    async def perform(self, group: str, name: str, *arguments: str | int) -> None:
        """Call a method of a group; shows an error that it raises as a notification."""
        method = getattr(getattr(self, group), name)

        async def call() -> None:
            done = method(*arguments)
            if inspect.isawaitable(done):
                await done

        await guarded(self._screen, call())
