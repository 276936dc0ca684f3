# /// script
# requires-python = ">=3.11"
# dependencies = [
#     "langchain-anthropic==1.7.10", "langchain-tests==1.1.9", "pytest==9.2.0", "pytest-asyncio==1.5.0",
# ]
# ///
"""LangChain's own tests of chat models, with its Anthropic model against a server.

    python langchain_anthropic_suite.py http://127.0.0.1:8000

They need a trained model, which calls tools. One event loop serves all of them, because the client keeps its
asynchronous connections in one cache for all loops.
"""

import os
import sys
from typing import Any

import pytest
from langchain_anthropic import ChatAnthropic
from langchain_tests.integration_tests import ChatModelIntegrationTests

_URL = "PRAVAHA_URL"


class TestChatAnthropic(ChatModelIntegrationTests):
    """The suite."""

    @property
    def chat_model_class(self) -> type[ChatAnthropic]:
        """The model under test."""
        return ChatAnthropic

    @property
    def chat_model_params(self) -> dict[str, Any]:
        """Its parameters."""
        return {
            "model": "claude-sonnet-4-5",
            "base_url": os.environ[_URL],
            "api_key": os.environ.get("PRAVAHA_API_KEY", "none"),
            "max_tokens": 200,
            "temperature": 0,
            "max_retries": 0,
            "timeout": 300,
        }

    @property
    def supports_anthropic_inputs(self) -> bool:
        """Whether messages may have the API's own blocks."""
        return True


if __name__ == "__main__":
    os.environ[_URL] = sys.argv[1].rstrip("/")
    options = ["asyncio_mode=auto", "asyncio_default_test_loop_scope=session"]
    settings = [one for option in options for one in ("-o", option)]
    sys.exit(pytest.main([__file__, "-q", "-p", "no:cacheprovider", *settings, *sys.argv[2:]]))
