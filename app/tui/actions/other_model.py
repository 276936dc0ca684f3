"""Having a message answered again by another model, as a sibling of its answer: for a comparison."""

from app.text.safe_text import safe_line
from app.tui.actions.guarded import guarded
from app.tui.actions.models import ModelActions
from app.tui.actions.tree import TreeActions
from app.tui.chat_screen import ChatScreen
from app.tui.selection import Selection
from app.tui.view.model_lines import answer_models, build_chosen
from engine.api.errors import InvalidRequest
from engine.conversations.tree import NodeKind


class OtherModel:
    """The key that has the selected answer, else the last one, given again by another model."""

    def __init__(
        self, screen: ChatScreen, selection: Selection, models: ModelActions, tree: TreeActions
    ) -> None:
        self._screen = screen
        self._selection = selection
        self._models = models
        self._tree = tree

    async def again(self) -> None:
        """Answer by the only other loaded model; by one that is picked, if there is none or more than one."""
        session = self._screen.session
        node_id = self._selection.target()
        node = session.view(node_id)
        if node_id in session.answers.running:
            raise InvalidRequest("The answer is running: stop it first.")
        if node.kind not in (NodeKind.USER, NodeKind.ASSISTANT):
            raise InvalidRequest("Only an answer can be given again: select one.")
        answered_by = node.model if node.kind is NodeKind.ASSISTANT else session.model.current
        name = await self._models.other(answered_by)
        if name is not None:
            await self._answer(node_id, name)
            return

        def picked(name: str) -> None:
            self._screen.run_worker(
                guarded(self._screen, self._answer(node_id, name)), exit_on_error=False
            )

        self._models.choose_for(picked)

    async def fork(self, node_id: str, name: str) -> None:
        """Begin a branch after a node that another model answers.

        Raises:
            ModelNotFound: there is no such model.
            PravahaError: as `Branches.fork`.
        """
        session = self._screen.session
        name = await self._models.meant(name)
        if session.model.several is None:
            if not await self._models.load(name):
                return
            branch = session.branches.fork(node_id)
            about = f"Branch {branch} begins here; {name} is loaded for it."
        else:
            earlier = answer_models(session.tree[one] for one in session.tree.path(node_id))
            branch = session.branches.fork(node_id, model=name)
            waits = session.model.several.awaits(name)
            about = f"Branch {branch} begins here. " + build_chosen(
                name, earlier, is_loaded=not waits
            )
        self._screen.notify_safely(safe_line(about))
        await self._screen.show_chat()

    async def _answer(self, node_id: str, name: str) -> None:
        session = self._screen.session
        if session.model.several is None:
            model = self._screen.client.snapshot().model
            loaded = model is not None and model.name == name
            if not loaded and not await self._models.load(name):
                return
            await self._tree.regenerate_by(node_id, None)
        else:
            await self._tree.regenerate_by(node_id, name)
        self._screen.notify_safely(
            safe_line(f"{name} answers, too; h and l go between the answers, c compares them.")
        )
