"""Code that exists only because of a defect or a cost of Textual 8.2.8, the version that we pin.

Some of it overrides private methods of Textual: check each file before another version is pinned.

`partial_compositor`
    Textual renders all rows of every visible widget when one row changed.
    Remove it when a partial update renders only the rows of its dirty regions.
`cached_strips`
    Textual composes the margins of a widget's cached rows again whenever the widget moves.
    Remove it when `render_lines` returns cached strips for an unchanged crop.
`laid_out_once`
    Textual lays out the screen a second time when the virtual size of a widget changed.
    Remove it when only a scroll bar that appears or disappears causes a second layout.
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
`legacy_shift_enter`
    Textual reports Shift+Enter in xterm's modifyOtherKeys form as the key "shift+" and a carriage
    return. Remove it when Textual reports `shift+enter`.
"""
