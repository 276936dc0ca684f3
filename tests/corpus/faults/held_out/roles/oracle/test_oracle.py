from roles.access import Access
from roles.grants import Grants


def test_roles_come_and_go():
    access = Access(Grants())
    for _ in range(3):
        access.grant("a", "writer")
        access.grant("a", "reader")
        assert access.rights_of("a") == {"read", "write"}
        access.revoke("a", "writer")
        assert access.rights_of("a") == {"read"}
        access.revoke("a", "reader")
        assert access.rights_of("a") == set()
        assert access.allowed("read") == []


def test_others_keep_their_answers():
    grants = Grants()
    access = Access(grants)
    access.grant("a", "admin")
    access.grant("b", "reader")
    access.revoke("a", "admin")
    assert access.rights_of("b") == {"read"}
    assert access.rights_of("a") == set()
    access.revoke("nobody", "admin")
    assert not access.may("nobody", "read")
