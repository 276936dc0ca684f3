"""Run as a process: what `pravaha --serve` runs, around the toy executor."""

import json
import sys
from pathlib import Path

from app.commands.serve import serve_engine
from app.server.process.config import ServerConfig
from tests.fakes.image_parser import AnyText, ImageParser
from tests.server.byte_engine import new_byte_engine

if __name__ == "__main__":
    engine_options, server_options = json.loads(sys.argv[1])
    if "force" in engine_options:  # JSON's keys are strings
        engine_options["force"] = {
            int(position): token for position, token in engine_options["force"].items()
        }
    if "swap_dir" in engine_options:
        engine_options["swap_dir"] = Path(engine_options["swap_dir"])
    engine = new_byte_engine(**engine_options)
    with ImageParser(AnyText()).reader() as image_reader:
        sys.exit(serve_engine(engine, ServerConfig(**server_options), image_reader=image_reader))
