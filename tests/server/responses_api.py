"""What the tests of the Responses API share: a server with scripted answers, and events of streams."""

import json
import re
from contextlib import contextmanager
from dataclasses import replace

import httpx

from app.server.calls.chat_choice import ChatChoice
from app.server.calls.chat_turn import ChatTurn
from engine.api.answer_parts import AnswerText
from tests.server.live import live
from tests.server.scripted_engine import ScriptedEngine, words

BODY = {"model": "toy", "input": "hi"}
URL = "/v1/responses"


class TableParser:
    """An answer parser that puts parts in place of the words of a table; the rest is text."""

    ended = False

    def __init__(self, table):
        self._table = table
        self._words = re.compile("(" + "|".join(map(re.escape, table)) + ")")

    def feed(self, text):
        found = [self._table.get(one, [AnswerText(one)]) for one in self._words.split(text) if one]
        return [part for parts in found for part in parts]

    def finish(self, **how):
        return []


@contextmanager
def answering(
    *pieces, table=None, monkeypatch=None, script=None, template=None, context=512, **config
):
    """A client of a server whose answers are these pieces; `table` has the parts that a piece stands for."""
    if table is not None:
        parser = TableParser(table)
        monkeypatch.setattr(ChatTurn, "_choice", lambda self, index: _choice(self, index, parser))
    engine = ScriptedEngine(script or words(*pieces), template=template)
    engine.info = replace(engine.info, context_length=context)
    with live(engine, **config) as server, httpx.Client(base_url=server.url, timeout=30) as http:
        http.engine, http.server = engine, server
        yield http


def _choice(turn, index, parser):
    return turn._choices.setdefault(index, ChatChoice(parser, None))


def prompt_of(http):
    """The text of the last prompt."""
    return bytes(i for i in http.engine.requests[-1].prompt_ids if i < 256).decode()


def stream(http, url=URL, **fields):
    """The events of a streamed response, each checked against its `event:` line and its number."""
    with http.stream("POST", url, json=BODY | {"stream": True} | fields) as response:
        assert response.status_code == 200, response.read()
        text = "".join(response.iter_text())
    return parse(text)


def parse(text, *, first=0):
    """The events in the text of a stream."""
    events = []
    for block in text.split("\n\n"):
        lines = [line for line in block.split("\n") if line and not line.startswith(":")]
        if not lines:
            continue
        fields = dict(line.split(": ", 1) for line in lines)
        event = json.loads(fields["data"])
        assert fields["event"] == event["type"]
        assert event["sequence_number"] == first + len(events)
        events.append(event)
    return events


def kinds(events):
    """The types of events, without their prefix; equal neighbours once."""
    names = [one["type"].removeprefix("response.") for one in events]
    return [name for i, name in enumerate(names) if i == 0 or names[i - 1] != name]
