"""The key map: the one table behind bindings, help, command palette and status bar.

Every action has an id, by which it can be remapped; a letter has the same meaning in every pane. Not
used: ^S ^B ^A (flow control, multiplexers), ^H ^M ^I ^[ (aliases of other keys), Alt+letter, F11.
"""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from textual.binding import Binding, BindingType
from textual.keys import Keys, _character_to_key


class Group(StrEnum):
    """The scope of a key; also a heading of the help."""

    GLOBAL = "Everywhere"
    PANES = "Panes"
    PROMPT = "Prompt"
    NAVIGATE = "Navigate"
    BRANCHES = "Branch tree"
    LIST = "Conversation list"
    KV = "KV map"
    TRIE = "Prefix tree"
    SCHEDULER = "Scheduler"
    LOG = "Log"
    CARDS = "Answers side by side"
    AGENTS = "Agents"
    SOURCES = "Sources"
    COMPARE = "Compare"


@dataclass(frozen=True, slots=True)
class Key:
    """One action and its keys.

    Attributes:
        id: stable name for remapping.
        keys: Textual key names, comma-separated; the first one is shown.
        action: Textual action.
        label: one word.
        help: one short sentence.
        priority: runs before the focused widget sees the key.
        palette: listed in the command palette.
    """

    id: str
    keys: str
    action: str
    label: str
    help: str
    group: Group
    priority: bool = False
    palette: bool = True

    @property
    def name(self) -> str:
        """The action without its arguments."""
        return self.action.partition("(")[0].rpartition(".")[2]


APP_KEYS: tuple[Key, ...] = (
    Key("palette", "ctrl+p", "command_palette", "commands", "Find and run any command", Group.GLOBAL, True, False),
    Key("help", "f1,question_mark", "help", "help", "Show every key", Group.GLOBAL),
    Key("copy_or_stop", "ctrl+c", "copy_or_stop", "stop", "Copy the selection; else stop the answer; twice quits", Group.GLOBAL, True, False),
    Key("escape", "escape", "escape", "back", "Undo one thing: popup, selection, queued message, answer, mode", Group.GLOBAL, False, False),
    Key("chat.new", "ctrl+n", "new_chat", "new", "Start a new conversation", Group.GLOBAL, True),
    Key("tree.toggle", "ctrl+t", "perform('go','toggle')", "branches", "Focus the branches, then the conversations, then the prompt", Group.GLOBAL, True),
    Key("search.all", "ctrl+f", "perform('search','open')", "search", "Search every branch of every conversation", Group.GLOBAL, True),
    Key("jump", "ctrl+o", "perform('jump','open')", "jump", "Go to a message or row in sight by typing its label", Group.GLOBAL, True),
    Key("theme", "f9", "theme", "theme", "Choose a theme, with a live preview", Group.GLOBAL, True),
    Key("quit", "ctrl+q", "quit", "quit", "Quit", Group.GLOBAL, True),
    Key("repaint", "ctrl+l", "repaint", "repaint", "Draw the whole screen again", Group.GLOBAL, True),
    Key("suspend", "ctrl+z", "suspend_process", "suspend", "Suspend the process; fg continues it", Group.GLOBAL, False, False),
    Key("pane.chat", "f2,1", "pane('chat')", "chat", "The conversation", Group.PANES, True),
    Key("pane.kv", "f3,2", "pane('kv')", "kv", "KV cache blocks (again: maximise)", Group.PANES, True),
    Key("pane.agents", "f4,3", "pane('agents')", "agents", "Agents: runs, and what each agent does (again: maximise)", Group.PANES, True),
    Key("pane.stats", "f5,4", "pane('stats')", "stats", "Engine stats (again: maximise)", Group.PANES, True),
    Key("pane.sources", "f6,5", "pane('sources')", "sources", "Collections of documents, and the passages of the last answer (again: maximise)", Group.PANES, True),
    Key("pane.logs", "f7,6", "pane('logs')", "log", "Log of engine and app (again: maximise)", Group.PANES, True),
    Key("pane.approvals", "f8,7", "pane('approvals')", "approvals", "Tool calls of agents that wait for your approval (again: maximise)", Group.PANES, True),
    Key("approve.next", "a", "perform('agents','approve')", "approve", "Open the oldest tool call that waits for your approval", Group.NAVIGATE),
    Key("pane.scheduler", "f10,8", "pane('scheduler')", "scheduler", "Scheduler: step plan and requests over time (again: maximise)", Group.PANES, True),
    Key("time.back", "less_than_sign", "perform('time','back')", "earlier", "Show the engine a second earlier", Group.PANES, False, False),
    Key("time.forward", "greater_than_sign", "perform('time','forward')", "later", "Show the engine a second later", Group.PANES, False, False),
    Key("time.far_back", "left_parenthesis", "perform('time','far_back')", "earlier", "Show the engine ten seconds earlier", Group.PANES, False, False),
    Key("time.far_forward", "right_parenthesis", "perform('time','far_forward')", "later", "Show the engine ten seconds later", Group.PANES, False, False),
    Key("time.live", "0", "perform('time','live')", "live", "Show the engine as it is now", Group.PANES),
    Key("prompt", "i", "prompt", "prompt", "Focus the prompt", Group.NAVIGATE),
    Key("msg.next", "j", "message('next')", "next", "Select the next message", Group.NAVIGATE, False, False),
    Key("msg.prev", "k", "message('previous')", "previous", "Select the previous message", Group.NAVIGATE, False, False),
    Key("path.first", "g", "message('first')", "first", "Select the first message", Group.NAVIGATE),
    Key("path.last", "G", "message('last')", "last", "Select the last message", Group.NAVIGATE),
    Key("tok.prev", "H,shift+left", "perform('tokens','previous')", "token", "Move the token cursor to the previous token", Group.NAVIGATE, False, False),
    Key("tok.next", "L,shift+right", "perform('tokens','next')", "token", "Move the token cursor to the next token", Group.NAVIGATE),
    Key("tok.prev_word", "ctrl+left", "perform('tokens','previous_word')", "word", "Move the token cursor to the previous word", Group.NAVIGATE, False, False),
    Key("tok.next_word", "ctrl+right", "perform('tokens','next_word')", "word", "Move the token cursor to the next word", Group.NAVIGATE, False, False),
    Key("alternatives", "full_stop", "perform('fork_at_token','alternatives')", "alternatives", "Show other tokens with their probabilities; enter forks", Group.NAVIGATE),
    Key("tint", "t", "perform('tokens','tint')", "tint", "Tint tokens by how unlikely they were, then by their source", Group.NAVIGATE),
    Key("surprise.prev", "left_curly_bracket", "perform('tokens','surprise_previous')", "surprising", "Move the token cursor to the previous unlikely token", Group.NAVIGATE, False, False),
    Key("surprise.next", "right_curly_bracket", "perform('tokens','surprise_next')", "surprising", "Move the token cursor to the next unlikely token", Group.NAVIGATE),
    Key("expand", "x", "perform('compare','ask_count')", "expand", "Generate 2 to 9 answers side by side: x, then their number", Group.NAVIGATE),
    Key("expand.deep", "X", "perform('compare','ask_count_at_token')", "continue", "Generate 2 to 9 continuations side by side from the token cursor: X, then their number", Group.NAVIGATE),
    Key("mark", "space", "perform('compare','mark')", "mark", "Mark the selected message, else the last one, to compare messages (c) or their KV blocks (v)", Group.NAVIGATE),
    Key("compare", "c", "perform('compare','compare')", "compare", "Compare the marked messages, else an answer with the one before it", Group.NAVIGATE),
    Key("search", "slash", "perform('search','find')", "find", "Find words in the messages of the open branch", Group.NAVIGATE),
    Key("search.next", "n", "perform('search','next')", "further", "Go to the next message that was found", Group.NAVIGATE, False, False),
    Key("search.prev", "N", "perform('search','previous')", "before", "Go to the previous message that was found", Group.NAVIGATE, False, False),
    Key("merge", "M", "perform('merge','open')", "merge", "Merge another branch into this one", Group.NAVIGATE),
    Key("copy.code", "Y", "perform('files','copy_code')", "code", "Copy a code block of the selected message or last answer", Group.NAVIGATE),
    Key("editor", "ctrl+g", "perform('files','edit')", "editor", "Edit the prompt in $EDITOR", Group.PROMPT, True),
    Key("regen", "r", "perform('tree','regenerate')", "again", "Regenerate the selected answer, else the last one", Group.NAVIGATE),
    Key("regen.model", "o", "perform('other_model','again')", "other", "Have the selected answer, else the last one, given again by another model, to compare them", Group.NAVIGATE),
    Key("model", "I", "perform('models','choose')", "model", "Choose the model; with several models, the one that answers this branch", Group.NAVIGATE),
    Key("kv.pin", "p", "perform('kv','pin')", "pin", "Keep the KV of the path to the message in the pool, or no longer", Group.NAVIGATE),
    Key("kv.warm", "w", "perform('kv','warm')", "warm", "Compute the KV of the path to the message, at the lowest priority", Group.NAVIGATE),
    Key("kv.show", "v", "perform('kv','show_blocks')", "blocks", "Show the KV blocks of the path to the message; with two to four marked messages, which blocks they share", Group.NAVIGATE),
    Key("undo", "u", "perform('tree','undo')", "undo", "Undo the last operation on the conversation", Group.NAVIGATE),
    Key("redo", "U", "perform('tree','redo')", "redo", "Redo what was undone last", Group.NAVIGATE),
    Key("stop", "s", "perform('tree','stop')", "stop", "Stop the selected answer, else the last one; its text is kept", Group.NAVIGATE),
    Key("pager", "V", "perform('files','page')", "pager", "Show the open branch as Markdown in $PAGER, else in less", Group.NAVIGATE),
    Key("export", "E", "perform('files','ask_export')", "export", "Write the conversation to a file", Group.NAVIGATE),
    Key("copy", "y", "perform('files','copy')", "copy", "Copy the selected message, else the last answer, as Markdown", Group.NAVIGATE),
)  # fmt: skip

PROMPT_KEYS: tuple[Key, ...] = (
    Key("navigate", "shift+tab", "app.navigate", "navigate", "Move from the prompt to the messages", Group.PROMPT, False, False),
    Key("send", "enter", "send", "send", "Send; queues while an answer runs", Group.PROMPT, False, False),
    Key("newline", "ctrl+j,shift+enter", "newline", "newline", "A new line (also a backslash, then enter)", Group.PROMPT, False, False),
    Key("text.undo", "ctrl+z", "undo_or_suspend", "undo", "Undo the last edit; with nothing to undo, suspend", Group.PROMPT, False, False),
    Key("history.prev", "up", "history_up", "history", "In the first row: the previous message or command", Group.PROMPT, False, False),
    Key("history.next", "down", "history_down", "history", "In the last row: the next one, finally the draft", Group.PROMPT, False, False),
    Key("history.search", "ctrl+r", "app.perform('search','find_prompt')", "earlier", "Find an earlier prompt by its words", Group.PROMPT),
    Key("scroll.up", "pageup", "app.scroll_messages(-1)", "up", "Scroll the messages up", Group.PROMPT, False, False),
    Key("scroll.down", "pagedown", "app.scroll_messages(1)", "down", "Scroll the messages down", Group.PROMPT, False, False),
    Key("complete", "tab", "complete", "complete", "Complete a /command, its argument, or an @agent, @collection or @file; again: the next candidate", Group.PROMPT, False, False),
    Key("clear", "ctrl+u", "clear_draft", "clear", "Clear the draft; ctrl+z brings it back", Group.PROMPT, False, False),
)  # fmt: skip

TRANSCRIPT_KEYS: tuple[Key, ...] = (
    Key("thought.fold", "T", "app.perform('thoughts','fold')", "thought", "Show what the model thought before the selected answer, else before the last one, or fold it", Group.NAVIGATE),
    Key("thought.end", "S", "app.perform('thoughts','end')", "answer", "Have a model that thinks answer now", Group.NAVIGATE),
    Key("path.start", "home", "app.message('first')", "start", "Go to the first message", Group.NAVIGATE, False, False),
    Key("path.end", "end", "app.message('end')", "end", "Go to the end and follow the newest text", Group.NAVIGATE, False, False),
    Key("files.fold", "z", "app.perform('documents','fold')", "files", "Show or hide the files that are attached to the message, or the results of its calls of tools", Group.NAVIGATE),
)  # fmt: skip

NAVIGATE_KEYS: tuple[Key, ...] = (
    Key("adopt", "enter", "app.perform('go','enter')", "open", "Open the branch of the node; on the open branch: edit the message or continue from the answer", Group.NAVIGATE, False, False),
    Key("fork", "f", "app.perform('tree','fork')", "fork", "Begin a branch at the token cursor, else after the message", Group.NAVIGATE),
    Key("edit", "e", "app.perform('tree','edit')", "edit", "Edit the message in the prompt; the result is a sibling", Group.NAVIGATE),
    Key("regen.params", "R", "app.perform('tree','regenerate_with')", "sampled", "Regenerate with another temperature", Group.NAVIGATE),
    Key("sib.prev", "h", "app.perform('go','sibling',-1)", "earlier", "The earlier sibling: another answer or wording", Group.NAVIGATE),
    Key("sib.next", "l", "app.perform('go','sibling',1)", "later", "The later sibling: another answer or wording", Group.NAVIGATE),
    Key("fork.next", "J", "app.perform('go','branch_point',1)", "down", "The next message with siblings", Group.NAVIGATE, False, False),
    Key("fork.prev", "K", "app.perform('go','branch_point',-1)", "up", "The previous message with siblings", Group.NAVIGATE, False, False),
    Key("head.prev", "left_square_bracket", "app.perform('go','branch',-1)", "previous", "The previous branch", Group.NAVIGATE),
    Key("head.next", "right_square_bracket", "app.perform('go','branch',1)", "next", "The next branch", Group.NAVIGATE),
    Key("head.last", "grave_accent", "app.perform('go','last_branch')", "last", "The branch that was open before", Group.NAVIGATE),
    Key("citations", "C", "app.perform('sources','open_cited')", "citations", "Open the passages that the selected answer cites, else those of the last answer", Group.NAVIGATE),
    Key("answer_anyway", "O", "app.perform('sources','answer_anyway')", "anyway", "Have a message answered that the attached documents do not seem to answer", Group.NAVIGATE),
    Key("edit.open", "d", "app.perform('edits','open')", "change", "Show what the selected answer, else the last one with code for a file, changes there, and apply it; after failing tests, have the model correct them", Group.NAVIGATE),
    Key("bookmark", "b", "app.perform('tree','bookmark')", "bookmark", "Set or remove a bookmark", Group.NAVIGATE),
    Key("bookmarks", "B", "app.perform('go','bookmarks')", "bookmarks", "List bookmarks and labels, and go to one", Group.NAVIGATE),
    Key("label", "m", "app.perform('tree','label')", "label", "Label the message", Group.NAVIGATE),
    Key("prune", "D", "app.perform('tree','prune')", "prune", "Remove the message and all below it; u restores", Group.NAVIGATE),
    Key("promote", "P", "app.perform('tree','promote')", "promote", "Make the branch the main one", Group.NAVIGATE),
)  # fmt: skip

BRANCH_KEYS: tuple[Key, ...] = (
    Key("branches.next", "j,down", "cursor(1)", "next", "Next node", Group.BRANCHES, False, False),
    Key("branches.prev", "k,up", "cursor(-1)", "previous", "Previous node", Group.BRANCHES, False, False),
    Key("branches.page_down", "pagedown", "page(1)", "down", "A page down", Group.BRANCHES, False, False),
    Key("branches.page_up", "pageup", "page(-1)", "up", "A page up", Group.BRANCHES, False, False),
    Key("branches.first", "g,home", "edge(0)", "first", "First node", Group.BRANCHES, False, False),
    Key("branches.last", "G,end", "edge(1)", "last", "Last node", Group.BRANCHES, False, False),
    Key("fold", "z", "fold", "fold", "Hide or show what is below the node", Group.BRANCHES, False, False),
    Key("hoist", "Z", "hoist", "only", "Show only what is below the node, or everything again", Group.BRANCHES, False, False),
)  # fmt: skip

LIST_KEYS: tuple[Key, ...] = (
    Key("chat.open", "enter", "select_cursor", "open", "Open the conversation", Group.LIST, False, False),
    Key("chat.filter", "slash", "filter", "filter", "Filter by the words of titles and messages", Group.LIST, False, False),
    Key("chat.delete", "delete", "delete", "delete", "Archive the conversation; in the archive delete it for good; asks", Group.LIST, False, False),
    Key("chat.archive", "A", "app.perform('archive','toggle')", "archive", "Show the archived conversations, or the others again", Group.LIST, False, False),
    Key("chat.restore", "u", "app.perform('archive','restore')", "restore", "Bring an archived conversation back", Group.LIST, False, False),
    Key("list.next", "j,down", "cursor_down", "next", "Next conversation", Group.LIST, False, False),
    Key("list.prev", "k,up", "cursor_up", "previous", "Previous conversation", Group.LIST, False, False),
)  # fmt: skip

KV_KEYS: tuple[Key, ...] = (
    Key("kv.left", "left,h", "move(-1,0)", "left", "Move the cursor", Group.KV, False, False),
    Key("kv.right", "right,l", "move(1,0)", "right", "Move the cursor", Group.KV, False, False),
    Key("kv.up", "up,k", "move(0,-1)", "up", "Move the cursor", Group.KV, False, False),
    Key("kv.down", "down,j", "move(0,1)", "down", "Move the cursor", Group.KV, False, False),
    Key("kv.zoom_in", "plus,equals_sign", "zoom(-1)", "finer", "Fewer blocks a cell", Group.KV, False, False),
    Key("kv.zoom_out", "minus", "zoom(1)", "coarser", "More blocks a cell", Group.KV, False, False),
    Key("kv.tint", "t", "tint", "colours", "Colour by state, request, age, fill or references", Group.KV, False, False),
    Key("kv.owner", "enter", "light_owner", "owner", "Highlight all blocks of this block's request, then of its next one", Group.KV, False, False),
)  # fmt: skip

KV_PANE_KEYS: tuple[Key, ...] = (
    Key("kv.tree", "v", "toggle_tree", "tree", "Show the prefix cache as a tree, or the map again", Group.KV, False, False),
)  # fmt: skip

TRIE_KEYS: tuple[Key, ...] = (
    Key("trie.next", "j,down", "move(1)", "next", "The next chain of blocks", Group.TRIE, False, False),
    Key("trie.prev", "k,up", "move(-1)", "previous", "The previous chain of blocks", Group.TRIE, False, False),
    Key("trie.page_down", "pagedown", "page(1)", "down", "A page down", Group.TRIE, False, False),
    Key("trie.page_up", "pageup", "page(-1)", "up", "A page up", Group.TRIE, False, False),
    Key("trie.first", "g,home", "edge(-1)", "first", "The first chain", Group.TRIE, False, False),
    Key("trie.last", "G,end", "edge(1)", "last", "The last chain", Group.TRIE, False, False),
    Key("trie.light", "enter", "light", "light", "Show the chain's blocks in the map", Group.TRIE, False, False),
)  # fmt: skip

AGENT_KEYS: tuple[Key, ...] = (
    Key("agent.next", "j,down", "move(1)", "next", "The next row, or the next entry of a trace", Group.AGENTS, False, False),
    Key("agent.prev", "k,up", "move(-1)", "previous", "The previous row, or the previous entry of a trace", Group.AGENTS, False, False),
    Key("agent.page_down", "pagedown", "move(10)", "down", "Ten rows down", Group.AGENTS, False, False),
    Key("agent.page_up", "pageup", "move(-10)", "up", "Ten rows up", Group.AGENTS, False, False),
    Key("agent.open", "enter", "open", "trace", "Show what the agent did; in its trace, unfold a step", Group.AGENTS, False, False),
    Key("agent.fold", "z", "fold", "fold", "Fold or unfold a run, or an entry of a trace", Group.AGENTS, False, False),
    Key("agent.fold_all", "Z", "fold_all", "all", "Fold or unfold all of them", Group.AGENTS, False, False),
    Key("agent.back", "escape", "back", "back", "Close the trace, then the filter", Group.AGENTS, False, False),
    Key("agent.order", "O", "order", "order", "Sort agents by group, start or tokens", Group.AGENTS, False, False),
    Key("agent.filter", "F,slash", "filter", "filter", "Show agents whose key, state or run contains a text", Group.AGENTS, False, False),
    Key("agent.stop", "s", "app.perform('agents','stop')", "stop", "Stop the run; asks; its partial result is kept", Group.AGENTS, False, False),
    Key("agent.stop_all", "S", "app.perform('agents','stop_all')", "all", "Stop all runs; asks", Group.AGENTS, False, False),
    Key("agent.approve", "a", "app.perform('agents','approve')", "approve", "Open the oldest tool call that waits", Group.AGENTS, False, False),
)  # fmt: skip

APPROVAL_KEYS: tuple[Key, ...] = (
    Key("approval.next", "j,down", "move(1)", "next", "The next call", Group.AGENTS, False, False),
    Key("approval.prev", "k,up", "move(-1)", "previous", "The previous call", Group.AGENTS, False, False),
    Key("approval.open", "enter", "open", "open", "Open the call: allow it once or in this conversation, or deny it with a reason", Group.AGENTS, False, False),
)  # fmt: skip

SOURCE_KEYS: tuple[Key, ...] = (
    Key("sources.next", "j,down", "move(1)", "next", "The next row", Group.SOURCES, False, False),
    Key("sources.prev", "k,up", "move(-1)", "previous", "The previous row", Group.SOURCES, False, False),
    Key("sources.page_down", "pagedown", "move(10)", "down", "Ten rows down", Group.SOURCES, False, False),
    Key("sources.page_up", "pageup", "move(-10)", "up", "Ten rows up", Group.SOURCES, False, False),
    Key("sources.open", "enter", "open", "open", "Open the passage; on a collection, list or hide its documents", Group.SOURCES, False, False),
    Key("sources.attach", "space", "attach", "attach", "Attach the collection to the open branch, or detach it", Group.SOURCES, False, False),
    Key("sources.fold", "z", "fold", "fold", "List the documents of the collection, or hide them", Group.SOURCES, False, False),
    Key("sources.watch", "W", "watch", "watch", "Read the collection again whenever its files change, or end that", Group.SOURCES, False, False),
    Key("sources.remove", "D", "remove", "delete", "Delete the collection or the document from the index; asks first", Group.SOURCES, False, False),
    Key("sources.stop", "s", "app.perform('sources','stop')", "stop", "Stop adding; what is stored stays", Group.SOURCES, False, False),
)  # fmt: skip

SCHEDULER_KEYS: tuple[Key, ...] = (
    Key("scheduler.policy", "o", "app.perform('scheduler','policy')", "policy", "The next scheduling policy", Group.SCHEDULER, False, False),
    Key("scheduler.steps", "O", "app.perform('scheduler','steps')", "steps", "The next way of forming steps", Group.SCHEDULER, False, False),
)  # fmt: skip

LOG_KEYS: tuple[Key, ...] = (
    Key("logs.level", "l", "level", "level", "Show all records, then warnings, then errors", Group.LOG, False, False),
    Key("logs.find", "slash", "find", "find", "Show only records with a text", Group.LOG, False, False),
    Key("logs.unfilter", "escape", "unfilter", "all", "Show all records again", Group.LOG, False, False),
    Key("logs.down", "j,down", "scroll(1)", "down", "The next record", Group.LOG, False, False),
    Key("logs.up", "k,up", "scroll(-1)", "up", "The previous record", Group.LOG, False, False),
    Key("logs.page_down", "pagedown", "page(1)", "down", "A page down", Group.LOG, False, False),
    Key("logs.page_up", "pageup", "page(-1)", "up", "A page up", Group.LOG, False, False),
    Key("logs.first", "g,home", "edge(-1)", "first", "The oldest record", Group.LOG, False, False),
    Key("logs.last", "G,end", "edge(1)", "last", "The newest record, and follow", Group.LOG, False, False),
)  # fmt: skip

COUNT_KEYS: tuple[Key, ...] = (
    Key("expand.drop", "escape", "drop", "drop", "After x: generate nothing", Group.CARDS, False, False),
)  # fmt: skip

CARD_KEYS: tuple[Key, ...] = (
    Key("card.prev", "h,left", "move(-1)", "previous", "Select the previous answer (also its number)", Group.CARDS, False, False),
    Key("card.next", "l,right", "move(1)", "next", "Select the next answer (also its number)", Group.CARDS, False, False),
    Key("card.adopt", "enter", "app.perform('compare','adopt_card')", "adopt", "Go on with this answer; the others stay in the tree", Group.CARDS, False, False),
    Key("card.prune", "D", "app.perform('compare','prune_card')", "prune", "Prune this answer; undo brings it back", Group.CARDS, False, False),
    Key("card.stop", "s", "app.perform('compare','stop_card')", "stop", "Stop this answer and keep its text", Group.CARDS, False, False),
    Key("card.close", "escape", "app.perform('compare','close_cards')", "close", "Close the answers; they go on", Group.CARDS, False, False),
)  # fmt: skip

COMPARE_KEYS: tuple[Key, ...] = (
    Key("compare.down", "j,down", "scroll(1)", "down", "Scroll all columns down", Group.COMPARE, False, False),
    Key("compare.up", "k,up", "scroll(-1)", "up", "Scroll all columns up", Group.COMPARE, False, False),
    Key("compare.page_down", "pagedown", "page(1)", "down", "Scroll down by a page", Group.COMPARE, False, False),
    Key("compare.page_up", "pageup", "page(-1)", "up", "Scroll up by a page", Group.COMPARE, False, False),
    Key("compare.first", "g,home", "edge(-1)", "first", "Go to the first row", Group.COMPARE, False, False),
    Key("compare.last", "G,end", "edge(1)", "last", "Go to the last row", Group.COMPARE, False, False),
    Key("compare.next", "n", "difference(1)", "next", "Go to the next difference", Group.COMPARE, False, False),
    Key("compare.prev", "N", "difference(-1)", "previous", "Go to the previous difference", Group.COMPARE, False, False),
    Key("compare.left", "h,left", "select(-1)", "left", "Select the column to the left (also its number)", Group.COMPARE, False, False),
    Key("compare.right", "l,right", "select(1)", "right", "Select the column to the right (also its number)", Group.COMPARE, False, False),
    Key("compare.adopt", "enter", "app.perform('compare','adopt_column')", "adopt", "Go on with the selected column's branch", Group.COMPARE, False, False),
    Key("compare.close", "escape", "app.perform('compare','close_comparison')", "close", "Close the comparison", Group.COMPARE, False, False),
)  # fmt: skip

SCOPES: dict[str, tuple[Key, ...]] = {
    "app": APP_KEYS,
    "prompt": PROMPT_KEYS,
    "transcript": (*TRANSCRIPT_KEYS, *NAVIGATE_KEYS),
    "branches": (*BRANCH_KEYS, *NAVIGATE_KEYS),
    "list": LIST_KEYS,
    "kv": (*KV_KEYS, *KV_PANE_KEYS),
    "trie": (*TRIE_KEYS, *KV_PANE_KEYS),
    "scheduler": SCHEDULER_KEYS,
    "log": LOG_KEYS,
    "agents": AGENT_KEYS,
    "approvals": APPROVAL_KEYS,
    "sources": SOURCE_KEYS,
    "count": COUNT_KEYS,
    "cards": CARD_KEYS,
    "compare": COMPARE_KEYS,
}
"""The actions that have keys in the same widget, whose keys must differ."""

ALL_KEYS = tuple(dict.fromkeys(key for keys in SCOPES.values() for key in keys))

_NAMES = {
    "question_mark": "?", "slash": "/", "plus": "+", "equals_sign": "=", "minus": "-",
    "escape": "esc", "delete": "del", "left_square_bracket": "[", "right_square_bracket": "]",
    "grave_accent": "`",
    "less_than_sign": "<", "greater_than_sign": ">",
    "left_parenthesis": "(", "right_parenthesis": ")",
    "full_stop": ".", "left_curly_bracket": "{",
    "right_curly_bracket": "}",
}  # fmt: skip


def _split(key: Key, keys: str) -> tuple[str, str]:
    """The keys that are handled before the focused widget, and those that are handled after it.

    A digit or letter is never handled before, because it may be input of the prompt.
    """
    names = [name.strip() for name in keys.split(",")]
    urgent = [name for name in names if len(name) > 1 and key.priority]
    return ",".join(urgent), ",".join(name for name in names if name not in urgent)


def _halves(key: Key) -> tuple[tuple[str, bool], ...]:
    """Binding ids of an action, and whether each has priority."""
    urgent, plain = _split(key, key.keys)
    if urgent and plain:
        return (key.id, True), (f"{key.id}.letter", False)
    return ((key.id, bool(urgent)),)


def bindings(keys: tuple[Key, ...]) -> list[BindingType]:
    """Textual bindings of a table."""
    made: list[BindingType] = []
    for key in keys:
        urgent, plain = _split(key, key.keys)
        for name, priority in _halves(key):
            made.append(
                Binding(
                    urgent if priority else plain,
                    key.action,
                    key.label,
                    id=name,
                    show=False,
                    priority=priority,
                    tooltip=key.help,
                )
            )
    return made


def shown(key: Key, keymap: Mapping[str, str] | None = None) -> str:
    """The keys of an action for display, after remapping."""
    keys = (keymap or {}).get(key.id, key.keys)
    return " ".join(_NAMES.get(name.strip(), name.strip()) for name in keys.split(","))


def hint(name: str, word: str, keymap: Mapping[str, str]) -> tuple[str, str, str]:
    """An action's first key, its label, and the action that a click on them runs.

    A widget's own action has no click, because the widget may not have the focus.
    """
    key = next(key for key in ALL_KEYS if key.id == name)
    click = f"app.{key.action}" if key in APP_KEYS else ""
    if key.action.startswith("app."):
        click = key.action
    return shown(key, keymap).split()[0], word, click


def read_keymap(keymap: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """The valid entries of a key map, and one sentence for each invalid one.

    Args:
        keymap: action id → keys, comma-separated, which replace the action's own.
    """
    good = {name: ",".join(one.strip() for one in keys.split(",")) for name, keys in keymap.items()}
    problems: list[str] = []
    # Removing an entry restores its action's old keys, which another entry may use: check again.
    while bad := next(((name, why) for name in good if (why := _problem(name, good))), None):
        del good[bad[0]]
        problems.append(f"The key map's entry for {bad[0]!r} {bad[1]}.")
    return good, problems


def to_textual(keymap: Mapping[str, str]) -> dict[str, str]:
    """A checked key map by binding id, for `App.set_keymap`."""
    given: dict[str, str] = {}
    for key in ALL_KEYS:
        if key.id in keymap:
            urgent, plain = _split(key, keymap[key.id])
            for name, priority in _halves(key):
                # Textual ignores an entry without keys, so unbind with a name that no key has.
                given[name] = (urgent if priority else plain) or f"unbound.{name}"
    return given


def _problem(name: str, keymap: Mapping[str, str]) -> str:
    """Why an entry is invalid; empty if it is valid."""
    found = next((key for key in ALL_KEYS if key.id == name), None)
    if found is None:
        near = difflib.get_close_matches(name, [key.id for key in ALL_KEYS], n=3)
        return "names no action" + (f": perhaps {' or '.join(near)}" if near else "")
    letters_work = found not in PROMPT_KEYS and (not found.priority or len(_halves(found)) > 1)
    for one in keymap[name].split(","):
        if not _is_key(one):
            return f"holds {one!r}, which is not a key"
        if len(one) == 1 and not letters_work:
            return f"holds {one!r}, which the prompt needs: use a function key or one with ctrl"
        for other in _scope(found):
            if other is not found and one in keymap.get(other.id, other.keys).split(","):
                return f"holds {one!r}, which is taken by {other.id!r}"
    return ""


def _scope(key: Key) -> tuple[Key, ...]:
    """The actions in the same scope, whose keys must differ."""
    return next(table for table in SCOPES.values() if key in table)


_KEY_NAMES = frozenset(str(key.value) for key in Keys)
_MODIFIERS = ("ctrl+", "shift+", "alt+", "super+", "hyper+", "meta+")


def _is_key(name: str) -> bool:
    """Whether Textual can report a key of this name."""
    if name in _KEY_NAMES:
        return True
    while modifier := next((one for one in _MODIFIERS if name.startswith(one)), ""):
        name = name.removeprefix(modifier)
    if len(name) == 1:
        return name.isprintable() and not name.isspace()
    return name in _KEY_NAMES or name in _CHARACTER_NAMES


_CHARACTER_NAMES = frozenset(_character_to_key(chr(code)) for code in range(33, 127))
