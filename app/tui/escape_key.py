"""`EscapeKey`: what the screen does at Esc. `view/escape.py` has the order in which things are undone."""

from collections.abc import Callable

from app.tui.action_groups import ActionGroups
from app.tui.chat_screen import ChatScreen
from app.tui.drawing import Drawing
from app.tui.marks import Marks
from app.tui.panes import CHAT
from app.tui.screen_layout import ScreenLayout
from app.tui.sending import Sending
from app.tui.stopping import Stopping
from app.tui.view.escape import EscapeEffect, EscapeState, escape_effect
from app.tui.widgets.branches import BranchPane
from app.tui.widgets.conversations import Conversations
from app.tui.widgets.prompt import Prompt
from app.tui.widgets.transcript import Transcript

_DOUBLE_ESC_S = 0.5


class EscapeKey:
    """Undoes one thing at a time.

    Args:
        clock: monotonic seconds.
    """

    def __init__(
        self,
        screen: ChatScreen,
        layout: ScreenLayout,
        drawing: Drawing,
        sending: Sending,
        actions: ActionGroups,
        marks: Marks,
        stopping: Stopping,
        clock: Callable[[], float],
    ) -> None:
        self._screen = screen
        self._layout = layout
        self._drawing = drawing
        self._sending = sending
        self._actions = actions
        self._marks = marks
        self._stopping = stopping
        self._clock = clock
        self._left_prompt_at = float("-inf")
        """When Esc last left an empty prompt: another one soon after opens the tree."""

    def press(self) -> None:
        """Undo one thing."""
        main, session = self._screen.main, self._screen.session
        chats, transcript = main.query_one(Conversations), main.query_one(Transcript)
        prompt, tree = main.query_one(Prompt), main.query_one(BranchPane).tree_view
        asked = self._actions.tree.drop_question()
        state = EscapeState(
            popup=(self._layout.overlaid and not chats.narrowed) or tree.has_focus,
            in_past=self._drawing.in_past,
            maximised=self._layout.maximised or self._layout.pane != CHAT,
            selection=asked
            or transcript.selected is not None
            or len(self._marks) > 0
            or bool(main.get_selected_text())
            or chats.narrowed,
            editing=prompt.editing is not None,
            reading=self._actions.held.waits,
            queued=bool(session.messages.queued),
            generating=session.answers.generating,
            prompting=self._layout.typing,
        )
        match escape_effect(state):
            case EscapeEffect.CLOSE_POPUP:
                if tree.has_focus:
                    self._actions.go.close_tree()
                else:
                    self._layout.hide_left_column()
                    prompt.focus()
            case EscapeEffect.RETURN_TO_NOW:
                self._drawing.go_in_time(None)
            case EscapeEffect.RESTORE_PANE:
                self._layout.restore_chat()
            case EscapeEffect.DROP_SELECTION if chats.narrowed:
                chats.widen()
            case EscapeEffect.DROP_SELECTION:
                if not self._actions.tokens.drop():
                    transcript.clear_selection()
                    main.clear_selection()
                    self._marks.clear()
            case EscapeEffect.LEAVE_EDIT:
                self._actions.tree.leave_edit()
            case EscapeEffect.KEEP_UNSENT:
                self._actions.held.cancel()
            case EscapeEffect.WITHDRAW_QUEUED:
                self._sending.withdraw()
            case EscapeEffect.STOP:
                self._stopping.stop()
            case EscapeEffect.NAVIGATE:
                self._layout.focus_messages()
                self._left_prompt_at = float("-inf") if prompt.text else self._clock()
            case EscapeEffect.NOTHING:
                if self._clock() - self._left_prompt_at <= _DOUBLE_ESC_S:
                    self._actions.go.open_tree_at_last_question()
                self._left_prompt_at = float("-inf")
