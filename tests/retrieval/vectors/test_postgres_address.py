"""Addresses of PostgreSQL databases come from the environment, and stay there."""

import ssl

import pytest

from engine.retrieval.vectors.errors import VectorIndexUnavailable
from engine.retrieval.vectors.postgres_address import PostgresAddress, postgres_address


def address(monkeypatch, text) -> PostgresAddress:
    monkeypatch.setenv("MY_DSN", text)
    return postgres_address("MY_DSN")


def test_a_url_with_everything(monkeypatch):
    found = address(monkeypatch, "postgresql://me:p%40ss@db.example:6000/vectors?sslmode=require")

    assert found == PostgresAddress("db.example", 6000, "me", "p@ss", "vectors", "require")
    assert "p@ss" not in repr(found)
    assert found.ssl_context is not None
    assert found.ssl_context.verify_mode == ssl.CERT_NONE


def test_a_socket_needs_no_tls(monkeypatch):
    found = address(monkeypatch, "postgresql:///vectors?host=/run/postgresql&user=me")
    assert found == PostgresAddress("/run/postgresql", 5432, "me", None, "vectors", "disable")
    assert found.ssl_context is None


def test_other_machines_are_verified(monkeypatch):
    found = address(monkeypatch, "postgres://me:secret@db.example/vectors")
    assert found.ssl_mode == "verify-full"
    assert found.ssl_context is not None
    assert found.ssl_context.check_hostname


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "MY_DSN is not set"),
        ("mysql://me:secret@db/x", "is no URL of a PostgreSQL database"),
        ("postgresql://db/x", "is no URL"),
        ("postgresql://me:secret@db", "is no URL"),
        ("postgresql://me:secret@db:port/x", "is no URL"),
        ("postgresql://me:secret@db/x?options=-c", "has the parameter options"),
        ("postgresql://me:secret@db/x?sslmode=prefer", "sslmode in MY_DSN must be one of"),
    ],
)
def test_what_is_wrong_is_said_without_the_secret(monkeypatch, text, message):
    with pytest.raises(VectorIndexUnavailable, match=message) as caught:
        address(monkeypatch, text)
    assert "secret" not in str(caught.value)
