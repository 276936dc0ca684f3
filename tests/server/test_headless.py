import subprocess
import sys

IMPORT_ALL = """
import sys
import app.commands.serve, app.server.app, app.server.process.server, engine.clients.http_client
heavy = {"textual", "torch", "transformers"} & {name.partition(".")[0] for name in sys.modules}
sys.exit(f"imported: {heavy}" if heavy else 0)
"""

HELP_IS_LIGHT = """
import sys
import app.commands.serve
heavy = {"fastapi", "uvicorn", "textual", "numpy"} & set(sys.modules)
sys.exit(f"imported: {heavy}" if heavy else 0)
"""

SERVE = """
import sys, threading
from tests.server.byte_engine import new_byte_engine
from app.commands.serve import serve_engine
from app.server.process.config import ServerConfig
import app.server.process.server as process

started = process.DrainingServer.startup

async def startup(server, sockets=None):
    await started(server, sockets)
    server.leave()

process.DrainingServer.startup = startup
status = serve_engine(new_byte_engine(), ServerConfig(port=0))
heavy = {"textual", "torch", "mcp", "mcp_types"} & set(sys.modules)
sys.exit(f"imported: {heavy}" if heavy else status)
"""


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)


def test_the_server_imports_no_screen_and_no_torch():
    result = run(IMPORT_ALL)
    assert result.returncode == 0, result.stderr


def test_the_command_itself_is_light():
    result = run(HELP_IS_LIGHT)
    assert result.returncode == 0, result.stderr


def test_not_even_while_serving():
    result = run(SERVE)
    assert result.returncode == 0, result.stderr
    assert "loopback only" in result.stdout


LOADED = """
import gc, sys
from types import SimpleNamespace
from app.commands.serve import _Announcer
from engine.runtime.served_models import ServedModels
from tests.server.byte_engine import byte_engine

with byte_engine() as engine:
    assert gc.get_freeze_count() == 0
    _Announcer(ServedModels.single(engine), SimpleNamespace()).run()
    sys.exit(0 if gc.get_freeze_count() > 10_000 else "collections visit what the start allocated")
"""


def test_collections_skip_what_was_allocated_before_the_model_was_loaded():
    result = run(LOADED)
    assert result.returncode == 0, result.stderr
    assert "Model toy" in result.stdout


NO_MODEL = """
import sys
from pathlib import Path
from app.commands.serve import run_server
from engine.api.config import EngineConfig

sys.exit(run_server(EngineConfig(model=Path("/nowhere.gguf"), name="x"), port=0))
"""


def test_a_model_that_cannot_be_loaded_ends_with_a_sentence():
    result = run(NO_MODEL)
    assert result.returncode == 1
    (line,) = result.stderr.splitlines()
    assert line.startswith("pravaha: ")
    assert "/nowhere.gguf" in line
