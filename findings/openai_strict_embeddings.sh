#!/usr/bin/env bash
# openai 3.57.0: a client that validates answers strictly refuses every answer of `embeddings.create`.
#
# Without `encoding_format` the library asks for "base64" on its own and decodes the vectors after the answer is parsed.
# With `_strict_response_validation=True` the parser comes first and wants a list of numbers, so that a right answer
# ends with APIResponseValidationError. Who tests a compatible server this way looks for the fault in the server.
# Seen, with a server that answers as it is asked: an error, and none with "float" or without strict validation.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet openai==3.57.0
"$folder/venv/bin/python" - <<'PYTHON'
import base64
import json
import struct
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

from openai import APIResponseValidationError, OpenAI

VECTOR = [0.5, -0.25]


class Server(BaseHTTPRequestHandler):
    """Answers with one vector, in the format that is asked for."""

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        packed = base64.b64encode(struct.pack("<2f", *VECTOR)).decode()
        vector = packed if asked.get("encoding_format") == "base64" else VECTOR
        answer = {
            "object": "list",
            "model": "m",
            "data": [{"object": "embedding", "index": 0, "embedding": vector}],
            "usage": {"prompt_tokens": 1, "total_tokens": 1},
        }
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = HTTPServer(("127.0.0.1", 0), Server)
threading.Thread(target=server.serve_forever, daemon=True).start()
address = f"http://127.0.0.1:{server.server_port}/v1"
seen = {}
for strict in (False, True):
    client = OpenAI(base_url=address, api_key="none", _strict_response_validation=strict)
    for name, options in (("nothing", {}), ("float", {"encoding_format": "float"})):
        try:
            vector = client.embeddings.create(model="m", input="a", **options).data[0].embedding
        except APIResponseValidationError as error:
            vector = None
            print(f"strict {strict}, asked for {name}: {error.__cause__ or error}")
        else:
            print(f"strict {strict}, asked for {name}: {vector}")
        seen[strict, name] = vector == VECTOR
assert seen == {
    (False, "nothing"): True,
    (False, "float"): True,
    (True, "nothing"): False,
    (True, "float"): True,
}, "the behaviour has changed"
PYTHON
