"""Who may do what. Questions are frequent, so the answers are kept by user."""

from roles.grants import RIGHTS, Grants


class Access:
    def __init__(self, grants: Grants) -> None:
        self._grants = grants
        self._kept: dict[str, set[str]] = {}

    def rights_of(self, user: str) -> set[str]:
        if user not in self._kept:
            roles = self._grants.roles_of(user)
            self._kept[user] = set().union(*(RIGHTS[role] for role in roles))
        return self._kept[user]

    def may(self, user: str, right: str) -> bool:
        return right in self.rights_of(user)

    def grant(self, user: str, role: str) -> None:
        self._grants.grant(user, role)
        self._kept.pop(user, None)

    def revoke(self, user: str, role: str) -> None:
        self._grants.revoke(user, role)
        self._kept.pop(user, None)

    def allowed(self, right: str) -> list[str]:
        return [user for user in self._grants.users() if self.may(user, right)]
