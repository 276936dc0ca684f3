"""Code that exists only because of a defect or a cost of Textual 8.2.8, the version that we pin.

Some of it overrides private methods of Textual: check each file before another version is pinned.

`all_arguments`
    An action with `*arguments` gets the first of them only.
    Remove it when `_callback.invoke` passes all of them.
`partial_compositor`
    Textual renders all rows of every visible widget when one row changed.
    Remove it when a partial update renders only the rows of its dirty regions.
`paced_output`
    Textual queues frames for a terminal that does not take them, and writes cells that did not change.
    Remove it when Textual drops frames and writes only changed cells.
`cached_strips`
    Textual composes the margins of a widget's cached rows again whenever the widget moves.
    Remove it when `render_lines` returns cached strips for an unchanged crop.
`freed_lines`
    A cache keeps the last 1,024 widgets' lines, also of removed ones.
    Remove it when `StylesCache.get_inner_outer` has a cache without `self`.
`laid_out_once`
    Textual lays out the screen a second time when the virtual size of a widget changed.
    Remove it when only a scroll bar that appears or disappears causes a second layout.
`parsed_once`
    Textual parses the style sheet twice at the start, and again whenever a theme is shown.
    Remove it when `Stylesheet.reparse` keeps what it has parsed.
`styled_once`
    Textual applies the style sheet to all widgets three times at the start.
    Remove it when a screen is mounted with the classes of its size.
`uniform_rows`
    Textual renders every row of a container whose size changed, although all rows are equal.
    Remove it when a container that grew renders only its new rows.
`answer_markdown`
    For each appended piece of text, Textual parses with a new parser, mounts a widget, lays out the
    screen and renders the whole paragraph.
    Remove it when `Markdown.append` updates the last paragraph in place.
`plain_fence`
    Textual highlights a whole code block again for each append inside it, and an `append` after
    `update` continues a fence that ended the update, closed or not.
    Remove it when an append highlights only the appended lines.
`terminal_parser`
    Textual reports escape sequences inside a bracketed paste as keys, Alt+Enter as `enter`, and
    Shift+Enter in xterm's modifyOtherKeys form as the key "shift+" and a carriage return.
    Remove it when pasted text is never reported as keys and the two keys have names of their own.
`terminal_driver`
    Bytes that are not UTF-8 and exceptions of the parser end the app; a lone Esc waits for a poll.
    Remove it with `terminal_parser`, when invalid input is replaced.
`browser_driver`
    The same parser for browsers, and the end of a process whose server is gone. Remove it with
    `terminal_parser`, when Textual ends at the end of its input.
`ordered_input`
    A key is forwarded to the focused widget before the previous key had its effect.
    Remove it when keys that were read at once are handled one after the other.
`removed_under_pointer`
    A click on a widget that was removed since the last frame raises an exception.
    Remove it when Textual checks that the widget still has a parent.
`closed_screen`
    A selection that changes on a closed screen leaves a coroutine that is never awaited, and a search of
    a closed command palette raises an exception.
    Remove it when the watcher of selections is no coroutine and the search checks for its list.
`expiring_toast`
    A toast that is mounted when its time is over stops the event loop for ever.
    Remove it when `Timer` ends for a negative interval.
`paged_options`
    Page up and down raise an exception in an option list that has no room on the screen.
    Remove it when `OptionList` checks that.
`one_line`
    Of a paste of several lines, a field of one line takes the first and drops the others.
    Remove it when `Input` joins the lines of a paste.
`undo_with_scrollbar`
    Undo and redo in a `TextArea` raise an exception when a scroll bar appears or disappears.
    Remove it when undoing a paste of thirty lines works in `TextArea`.
"""
