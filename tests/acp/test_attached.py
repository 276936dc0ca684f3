"""`pravaha acp --attach`: an editor over a server, with the package's own client and the real command."""

import asyncio

import pytest
from acp import spawn_agent_process, text_block

from tests.acp.editor import PATIENCE_S, EditorClient
from tests.fakes.installation import PRAVAHA, own_installation
from tests.server.byte_engine import byte_engine, is_quiet, wait_until
from tests.server.live import live


@pytest.fixture
def environment(tmp_path):
    return own_installation(tmp_path)


async def test_an_editor_talks_to_the_model_of_a_server(tmp_path, environment):
    client = EditorClient()
    with byte_engine() as engine, live(engine) as server:
        command = (*PRAVAHA, "acp", "--attach", server.url, "--max-tokens", "20")
        started = spawn_agent_process(client, *command, env=environment, cwd=tmp_path)
        async with asyncio.timeout(PATIENCE_S), started as (agent, process):
            await agent.initialize(protocol_version=1)
            session = (await agent.new_session(cwd=str(tmp_path), mcp_servers=[])).session_id
            answer = await agent.prompt(session_id=session, prompt=[text_block("Hello?")])
            assert answer.stop_reason in ("max_tokens", "end_turn")
            assert process.returncode is None
        await asyncio.to_thread(wait_until, lambda: is_quiet(engine))


async def test_a_client_that_is_killed_stops_the_request_of_its_answer(tmp_path, environment):
    client = EditorClient()
    with byte_engine(step_s=0.01) as engine, live(engine) as server:
        command = (*PRAVAHA, "acp", "--attach", server.url)
        started = spawn_agent_process(client, *command, env=environment, cwd=tmp_path)
        async with asyncio.timeout(PATIENCE_S), started as (agent, process):
            await agent.initialize(protocol_version=1)
            session = (await agent.new_session(cwd=str(tmp_path), mcp_servers=[])).session_id
            running = asyncio.create_task(
                agent.prompt(session_id=session, prompt=[text_block("Hello?")])
            )
            await asyncio.to_thread(wait_until, lambda: engine.snapshot().running > 0)
            process.stdin.close()
            assert await process.wait() == 0
            running.cancel()
        await asyncio.to_thread(wait_until, lambda: is_quiet(engine))
