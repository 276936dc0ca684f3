#!/usr/bin/env bash
# mcp 2.3.0: the text and the structured content of one tool's result have different members and values.
#
# A tool that is declared `-> Weather` may return a plain dictionary. The structured content, for the application, is
# what `Weather` makes of it; the text, for the model, is the dictionary as it came: with members that `Weather` does
# not have, without the values that it fills in, numbers still strings. A list of a subclass differs as well: the text
# has all members, the structured content only those of the declared class, though alone it has all. Seen: as said,
# without a warning; the two are equal for an instance of `Weather` itself.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet mcp==2.3.0
"$folder/venv/bin/python" - <<'PYTHON'
import asyncio
import json

from mcp import Client
from mcp.server import MCPServer
from pydantic import BaseModel


class Weather(BaseModel):
    degrees: float
    unit: str = "C"


class Storm(Weather):
    wind: int


server = MCPServer("weather")


@server.tool()
def whole() -> Weather:
    return Weather(degrees=16.5)


@server.tool()
def upstream() -> Weather:
    return {"degrees": "16.5", "station": 7}


@server.tool()
def one() -> Weather:
    return Storm(degrees=16.5, wind=90)


@server.tool()
def several() -> list[Weather]:
    return [Storm(degrees=16.5, wind=90)]


async def main() -> None:
    seen = {}
    async with Client(server) as client:
        for name in ("whole", "upstream", "one", "several"):
            result = await client.call_tool(name, {})
            assert not result.is_error
            text = json.loads(result.content[0].text)
            structured = result.structured_content
            if name == "several":
                structured = structured["result"][0]
            print(f"{name}: text {text}, structured content {structured}")
            seen[name] = text, structured
    plain, storm = {"degrees": 16.5, "unit": "C"}, {"degrees": 16.5, "unit": "C", "wind": 90}
    assert seen == {
        "whole": (plain, plain),
        "upstream": ({"degrees": "16.5", "station": 7}, plain),
        "one": (storm, storm),
        "several": (storm, plain),
    }, "the behaviour has changed"


asyncio.run(main())
PYTHON
