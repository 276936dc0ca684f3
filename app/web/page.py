"""The page of a tab: textual-serve's terminal, with nothing from other machines.

textual-serve's own page asks another host for its font, which it also ships.
"""

from html import escape

_PAGE = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>{title}</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="static/css/xterm.css">
<style>
@font-face {{
  font-family: "Roboto Mono"; font-weight: 100 700;
  src: url("static/fonts/RobotoMono-VariableFont_wght.ttf");
}}
@font-face {{
  font-family: "Roboto Mono"; font-weight: 100 700; font-style: italic;
  src: url("static/fonts/RobotoMono-Italic-VariableFont_wght.ttf");
}}
body {{ margin: 0; background: #0c181f; color: #fff; font: 16px "Roboto Mono", monospace; }}
.note {{ position: absolute; inset: 0; display: grid; place-content: center; text-align: center; }}
.textual-terminal {{ height: 100vh; visibility: hidden; }}
.-first-byte .textual-terminal {{ visibility: visible; }}
.-first-byte #opening, #ended {{ display: none; }}
.-closed #ended {{ display: grid; z-index: 10; background: #0c181fe0; }}
</style>
<script src="static/js/textual.js"></script>
</head>
<body>
<div class="note" id="opening">{title}</div>
<div class="note" id="ended"><p>This session has ended.</p><button id="start">Begin another</button></div>
<div class="textual-terminal" data-session-websocket-url="{socket}" data-font-size="{font_size}"></div>
<script>document.getElementById("start").onclick = () => location.reload();</script>
</body>
</html>
"""


def page_html(*, title: str, socket: str, font_size: int) -> str:
    """The page.

    Args:
        title: what is shown until the terminal is.
        socket: address of the terminal's WebSocket.
        font_size: of the terminal, in pixels.
    """
    return _PAGE.format(title=escape(title), socket=escape(socket), font_size=font_size)
