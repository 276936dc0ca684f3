"""The built-in tools."""

from agents.tools.edit import EDIT
from agents.tools.git import GIT
from agents.tools.glob import GLOB
from agents.tools.grep import GREP
from agents.tools.http_fetch import http_fetch_tool
from agents.tools.python import PYTHON
from agents.tools.rag_search import rag_search_tool
from agents.tools.read import READ
from agents.tools.shell import SHELL
from agents.tools.todo import TODO
from agents.tools.tool import Tool
from agents.tools.write import WRITE

TOOLS: tuple[Tool, ...] = (
    READ,
    GREP,
    GLOB,
    GIT,
    EDIT,
    WRITE,
    TODO,
    PYTHON,
    SHELL,
    http_fetch_tool(),
    rag_search_tool(),
)
