#!/usr/bin/env bash
# ollama 0.6.3: of a function's docstring, the model does not get a continued line that has a colon in it.
#
# `chat(tools=[function])` makes the tool's description from the docstring, for which its documentation asks for
# Google's style. There a long description goes on in an indented line. If such a line has a colon, as "for example:
# 2026-05-01" or a time of day, it is taken for one more argument: the model is sent half a sentence, without a warning.
# Seen: the line with the colon is missing in the request; the same text without the colon is sent whole.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet ollama==0.6.3
"$folder/venv/bin/python" - <<'PYTHON'
import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

from ollama import Client

requests = []


class Server(BaseHTTPRequestHandler):
    """Keeps what is asked, and answers with one message."""

    def do_POST(self):
        requests.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
        body = json.dumps({"model": "m", "message": {"role": "assistant", "content": "Done."}, "done": True})
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_):
        pass


def remind(day: str, hour: str) -> str:
    """Remind the user.

    Args:
        day: The day of the reminder,
            in ISO form.
        hour: The hour of the reminder,
            between 08:00 and 18:00 only.
    """
    return f"{day} {hour}"


server = HTTPServer(("127.0.0.1", 0), Server)
threading.Thread(target=server.serve_forever, daemon=True).start()
client = Client(host=f"http://127.0.0.1:{server.server_port}")
client.chat("m", [{"role": "user", "content": "Remind me."}], tools=[remind])
properties = requests[0]["tools"][0]["function"]["parameters"]["properties"]
print(json.dumps(properties, indent=2))
assert {name: one["description"] for name, one in properties.items()} == {
    "day": "The day of the reminder, in ISO form.",
    "hour": "The hour of the reminder,",
}, "the behaviour has changed"
PYTHON
