import pytest

from roles.access import Access
from roles.grants import Grants


@pytest.fixture
def access():
    access = Access(Grants())
    access.grant("ann", "admin")
    access.grant("bob", "reader")
    return access


def test_may(access):
    assert access.may("ann", "delete")
    assert not access.may("bob", "write")
    assert not access.may("eve", "read")


def test_a_new_role_holds_at_once(access):
    assert not access.may("bob", "write")
    access.grant("bob", "writer")
    assert access.may("bob", "write")


def test_a_revoked_role_is_gone_at_once(access):
    assert access.may("ann", "invite")
    access.revoke("ann", "admin")
    assert not access.may("ann", "invite")


def test_allowed(access):
    assert access.allowed("read") == ["ann", "bob"]


def test_unknown_role(access):
    with pytest.raises(KeyError):
        access.grant("ann", "king")
