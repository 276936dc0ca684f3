"""`web_sources`: pages that a task names by their URL, fetched as sources."""

import re

from agents.api.errors import BudgetExhausted, PermissionDenied
from agents.procedures.procedure import ProcedureContext
from agents.workspace.source_file import SourceFile

MAX_PAGES = 5
URL = re.compile(r"https?://[^\s<>\"'`|\\^{}]+[^\s<>\"'`|\\^{}.,;:!?)\]]")


async def web_sources(text: str, context: ProcedureContext) -> list[SourceFile]:
    """The pages whose URLs are in the text, as files named by them; notes say what is missing."""
    urls = list(dict.fromkeys(URL.findall(text)))
    tool = context.available_tools.get("http_fetch")
    if not urls or tool is None:
        return []
    if tool.unavailable:
        context.note(f"The pages that the task names were not read: {tool.unavailable}")
        return []
    if len(urls) > MAX_PAGES:
        context.note(f"Of {len(urls)} pages that the task names, the first {MAX_PAGES} were read.")
    found = []
    for url in urls[:MAX_PAGES]:
        context.check_cancelled()
        try:
            page = await context.tool("http_fetch", url=url)
        except (PermissionDenied, BudgetExhausted) as error:
            context.note(f"{url:.200} was not read: {error}")
            continue
        if page["failed"]:
            context.note(f"{url:.200} was not read: {page['text']:.300}")
        else:
            found.append(SourceFile(str(page["url"]), str(page["content"]).encode()))
    return found
