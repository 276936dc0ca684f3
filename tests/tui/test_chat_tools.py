"""The model calls tools in the screen's chat: folded calls, approvals, stopping, a restart."""

import asyncio
import json
import threading
from contextlib import contextmanager

from pydantic import BaseModel

from agents import Cluster
from agents.plugins.registry import Registry
from agents.runs.approvals import Approvals
from agents.service.http_service import HttpRunService
from agents.service.local_service import LocalRunService
from agents.tools.tool import Effect, Tool, ToolOutput
from app.runtime.chat_tools import ChatTools
from engine.conversations.tree import NodeKind, NodeStatus
from engine.grammar.call_plan import WORDS
from tests.fakes.fake_client import FakeClient
from tests.server.live import live
from tests.server.scripted_engine import ScriptedEngine, words
from tests.tui.harness import open_screen


class Word(BaseModel):
    word: str


class Nothing(BaseModel):
    pass


def call(name, **arguments):
    return f"<tool_call>{json.dumps({'name': name, 'arguments': arguments})}</tool_call>"


class Tools:
    def __init__(self, roots=None):
        self.called = []
        self.stopped = threading.Event()
        read, write = frozenset({Effect.READ}), frozenset({Effect.WRITE})
        registry = Registry(
            tools={
                "echo": Tool("echo", "Says it.", Word, read, self.echo),
                "press": Tool("press", "Presses.", Nothing, write, self.press),
                "wait": Tool("wait", "Waits.", Nothing, read, self.wait),
            }
        )
        self.service = LocalRunService(
            lambda: Cluster(registry=registry, approvals=Approvals(), mode="auto"), roots=roots
        )

    async def echo(self, arguments, context):
        self.called.append(arguments.word)
        return ToolOutput(f"the result is {arguments.word.upper()}")

    async def press(self, arguments, context):
        self.called.append("press")
        return ToolOutput("pressed")

    async def wait(self, arguments, context):
        self.called.append("wait")
        try:
            await asyncio.Event().wait()
        finally:
            self.stopped.set()


@contextmanager
def opened(tmp_path, *names):
    made = Tools()
    chat_tools = ChatTools(made.service, tmp_path, names)
    try:
        yield made, {"run_service": made.service, "chat_tools": chat_tools}
    finally:
        chat_tools.close()
        made.service.close()


async def until_asked(ui, count):
    """Let the engine work until it was asked for so many answers and has given them."""

    def given():
        ui.client.finish()
        return not ui.client.answers and not ui.session.answers.generating

    await ui.until(given, "the answers")
    await ui.settled()


def kinds(ui):
    return [node.kind for node in ui.session.path()]


async def test_a_call_is_shown_folded_and_its_result_is_answered(tmp_path):
    with opened(tmp_path, "echo") as (made, options):
        async with open_screen(
            tmp_path, "I look. " + call("echo", word="hi"), "It said HI.", **options
        ) as ui:
            await ui.ask("Look.")
            await until_asked(ui, 2)
            await ui.shown("I look.", "echo", "word=hi", "ok", "It said HI.", "z shows it")
            assert "<tool_call>" not in ui.text
            assert "the result is HI" not in ui.text
            assert kinds(ui) == [
                NodeKind.USER, NodeKind.ASSISTANT, NodeKind.TOOL, NodeKind.ASSISTANT,
            ]  # fmt: skip
            prompt = ui.client.detokenize(ui.client.requests[-1].prompt_ids)
            assert "the result is HI" in prompt
            await ui.press("escape", "k", "k", "z")
            await ui.until(lambda: "the result is HI" in ui.text, "the result")
            await ui.press("z")
            await ui.gone("the result is HI")
        # A restart has it in the same places.
        async with open_screen(tmp_path, **options) as ui:
            await ui.shown("I look.", "echo", "ok", "It said HI.")
            assert "<tool_call>" not in ui.text
            assert kinds(ui)[2] is NodeKind.TOOL
    assert made.called == ["hi"]


async def test_a_write_waits_for_the_approval_on_the_screen(tmp_path):
    with opened(tmp_path, "press") as (made, options):
        async with open_screen(tmp_path, call("press"), "Done.", **options) as ui:
            await ui.ask("Press.")

            def asked():
                ui.client.finish()
                return made.service.approvals()

            await ui.until(asked, "the approval")
            await ui.until(lambda: any("approval" in text for text in ui.toasts), "the toast")
            await ui.shown("press", "waits for your approval: f8")
            (request,) = made.service.approvals()
            assert (request.agent, request.tool) == ("chat", "press")
            made.service.decide(request.id, "once")
            await until_asked(ui, 2)
            await ui.shown("press", "ok", "Done.")
            assert "approval: f8" not in ui.text
    assert made.called == ["press"]


async def test_escape_stops_the_call_that_runs(tmp_path):
    with opened(tmp_path, "wait") as (made, options):
        async with open_screen(tmp_path, call("wait"), "never", **options) as ui:
            await ui.ask("Wait.")

            def began():
                ui.client.finish()
                return made.called

            await ui.until(began, "the call")
            await ui.press("escape")
            await ui.until(made.stopped.is_set, "the end of the call")
            await ui.until(lambda: not ui.session.answers.running, "the end")
            await ui.shown("wait", "stopped")
            assert ui.session.path()[-1].status is NodeStatus.STOPPED


async def test_a_repeated_call_is_followed_by_an_answer_in_words(tmp_path):
    with opened(tmp_path, "echo") as (made, options):
        again = call("echo", word="hi")
        async with open_screen(tmp_path, again, again, "It said HI.", **options) as ui:
            await ui.ask("Look.")
            await until_asked(ui, 3)
            await ui.shown("It said HI.")
            assert ui.client.requests[-1].sampling.grammar == WORDS
    assert made.called == ["hi"]


@contextmanager
def attached(tmp_path, *names):
    """The options of a screen that is attached to a server with the tools."""
    made = Tools(roots=[tmp_path])
    with live(ScriptedEngine(words("x")), run_service=made.service) as server:
        service = HttpRunService(server.url)
        chat_tools = ChatTools(service, tmp_path, names)
        try:
            yield made, {"run_service": service, "chat_tools": chat_tools}
        finally:
            chat_tools.close()
            service.close()
    made.service.close()


async def test_an_attached_screen_calls_the_tools_of_the_server(tmp_path):
    with attached(tmp_path, "echo") as (made, options):
        async with open_screen(
            tmp_path, "I look. " + call("echo", word="hi"), "It said HI.", **options
        ) as ui:
            await ui.ask("Look.")
            await until_asked(ui, 2)
            await ui.shown("I look.", "echo", "word=hi", "ok", "It said HI.", "z shows it")
            prompt = ui.client.detokenize(ui.client.requests[-1].prompt_ids)
            assert "the result is HI" in prompt
    assert made.called == ["hi"]


async def test_an_attached_screen_asks_for_approvals_of_the_server(tmp_path):
    with attached(tmp_path, "press") as (made, options):
        async with open_screen(tmp_path, call("press"), "Done.", **options) as ui:
            await ui.ask("Press.")

            def asked():
                ui.client.finish()
                return any("approval" in text for text in ui.toasts)

            await ui.until(asked, "the toast")
            (request,) = options["run_service"].approvals()
            await asyncio.to_thread(options["run_service"].decide, request.id, "once")
            await until_asked(ui, 2)
            await ui.shown("press", "ok", "Done.")
    assert made.called == ["press"]


async def test_escape_stops_a_call_on_the_server(tmp_path):
    with attached(tmp_path, "wait") as (made, options):
        async with open_screen(tmp_path, call("wait"), "never", **options) as ui:
            await ui.ask("Wait.")

            def began():
                ui.client.finish()
                return made.called

            await ui.until(began, "the call")
            await ui.press("escape")
            await ui.until(made.stopped.is_set, "the end of the call")
            await ui.shown("wait", "stopped")


async def test_a_server_without_tools_is_named_where_they_are_asked_for(tmp_path):
    with live(ScriptedEngine(words("x"))) as server:
        service = HttpRunService(server.url)
        chat_tools = ChatTools(service, tmp_path)
        options = {"run_service": service, "chat_tools": chat_tools}
        async with open_screen(tmp_path, "Plain.", **options) as ui:
            await ui.ask("/tools on")
            await ui.until(lambda: any("runs no agents" in text for text in ui.toasts), "why")
        chat_tools.close()
        service.close()


async def test_tools_are_chosen_and_switched_off(tmp_path):
    with opened(tmp_path) as (_, options):
        async with open_screen(tmp_path, "Plain.", **options) as ui:
            await ui.ask("/tools echo")
            await ui.until(lambda: options["chat_tools"].chosen == ("echo",), "the choice")
            await ui.ask("/tools nothing")
            await ui.until(lambda: any("no tool 'nothing'" in t for t in ui.toasts), "a refusal")
            await ui.ask("/tools off")
            await ui.until(lambda: options["chat_tools"].chosen == (), "off")
            await ui.ask("Hello")
            await ui.answered()
            await ui.shown("Plain.")
            assert "tool echo" not in ui.client.detokenize(ui.client.requests[-1].prompt_ids)


async def test_tools_are_listed(tmp_path):
    with opened(tmp_path, "echo") as (_, options):
        async with open_screen(tmp_path, client=FakeClient(), **options) as ui:
            await ui.ask("/tools")
            await ui.shown("Tools of the chat", "echo: Says it.", "press: Presses.")
