"""An MCP server over standard input and output, without the SDK: it starts fast and can misbehave.

`python mcp_server.py [FLAG…]`; the tools are what its calls do. Flags: `hang` never answers, `exit` ends at
once, `noise` writes lines that are no messages first, `stubborn` ignores SIGTERM and the end of its input,
`child` starts a child that outlives it, `modern` refuses the handshake of older versions, `pages` lists one
tool a page. A file named by the variable `MCP_TOOLS` has further definitions; `MCP_PID` names a file for
process ids.
"""

import json
import os
import signal
import subprocess
import sys
import time

FLAGS = set(sys.argv[1:])
COMPLETE = {"resultType": "complete", "ttlMs": 0, "cacheScope": "public"}
TOOLS = [
    {
        "name": "echo",
        "description": "Return the text.",
        "inputSchema": {
            "type": "object",
            "properties": {"text": {"type": "string"}},
            "required": ["text"],
            "additionalProperties": False,
        },
        "annotations": {"readOnlyHint": True},
    },
    *(
        {"name": name, "description": f"Does {name}.", "inputSchema": {"type": "object"}}
        for name in (
            "slow",
            "crash",
            "huge",
            "garbage",
            "error",
            "fail",
            "environment",
            "change",
            "structured",
        )
    ),
]


def tools():
    path = os.environ.get("MCP_TOOLS")
    if path and os.path.exists(path):
        with open(path) as file:
            changed = {one["name"]: one for one in json.load(file)}
        return [changed.pop(one["name"], one) for one in TOOLS] + list(changed.values())
    return TOOLS


def send(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def text(number, value, **more):
    content = [{"type": "text", "text": value}]
    send({"id": number, "result": {"resultType": "complete", "content": content, **more}})


def call(number, name, arguments):
    match name:
        case "echo":
            text(number, arguments["text"])
        case "slow":
            time.sleep(600)
        case "crash":
            sys.stderr.write("out of ideas\n")
            sys.stderr.flush()
            os._exit(3)
        case "huge":
            while True:
                sys.stdout.write("x" * 1_000_000)
        case "garbage":
            for _ in range(100):
                sys.stdout.write("{not json\n")
            sys.stdout.flush()
            time.sleep(600)
        case "error":
            send({"id": number, "error": {"code": -32000, "message": "no\x1b[31m luck"}})
        case "fail":
            text(number, "it failed", isError=True)
        case "environment":
            text(number, json.dumps(dict(os.environ)))
        case "change":
            send({"method": "notifications/tools/list_changed"})
            text(number, "changed")
        case "structured":
            text(number, "", structuredContent={"a": [1, 2]})
        case _:
            text(number, f"called {name}")


def answer(message):
    number, method = message.get("id"), message.get("method")
    if method == "initialize":
        if "modern" in FLAGS:
            send(
                {
                    "id": number,
                    "error": {
                        "code": -32022,
                        "message": "old",
                        "data": {"supported": ["2026-07-28"]},
                    },
                }
            )
            return
        answered = {
            "protocolVersion": message["params"]["protocolVersion"],
            "capabilities": {"tools": {"listChanged": True}},
            "serverInfo": {"name": "fake", "version": "1"},
        }
        send({"id": number, "result": answered})
    elif method == "server/discover":
        send(
            {
                "id": number,
                "result": {
                    "resultType": "complete",
                    "supportedVersions": ["2026-07-28"],
                    "capabilities": {"tools": {}},
                    "ttlMs": 0,
                    "cacheScope": "public",
                },
            }
        )
    elif method == "tools/list":
        listed = {"tools": tools()}
        if "pages" in FLAGS:
            at = int((message.get("params") or {}).get("cursor") or 0)
            listed = {"tools": tools()[at : at + 1]}
            if at + 1 < len(tools()):
                listed["nextCursor"] = str(at + 1)
        send({"id": number, "result": {**COMPLETE, **listed}})
    elif method == "tools/call":
        call(number, message["params"]["name"], message["params"].get("arguments") or {})
    elif number is not None:
        send({"id": number, "error": {"code": -32601, "message": "Method not found"}})


def main():
    if "exit" in FLAGS:
        sys.stderr.write("configuration missing\n")
        sys.exit(7)
    pids = [os.getpid()]
    if "stubborn" in FLAGS:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if "child" in FLAGS:
        pids.append(subprocess.Popen(["sleep", "600"]).pid)
    if path := os.environ.get("MCP_PID"):
        with open(path, "a") as file:
            file.writelines(f"{pid}\n" for pid in pids)
    if "noise" in FLAGS:
        sys.stdout.write("Starting up…\n\n")
        sys.stdout.buffer.write(b"\xff\xfe\n")
    for line in sys.stdin:
        if "hang" not in FLAGS:
            answer(json.loads(line))
    if "stubborn" in FLAGS:
        time.sleep(600)


main()
