"""The ACLs of a cluster, and what follows from them.

What is asked is found by the resource's name: literally, by `*`, and by each of the lengths that
prefixes have. So a question costs by how many ACLs hold for one resource, not by how many there
are.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, TypeAlias

from tidemark.partitions.state_machines.access.acls import (
    EVERYBODY,
    WILDCARD,
    Acl,
    Operation,
    PatternType,
    Permission,
    ResourceType,
    acl_of_plain,
    plain_acl,
)
from tidemark.protocol.errors import ErrorCode, RequestError

ACLS_MAX: Final = 10_000
"""All brokers hold them in memory, and in every snapshot of the metadata."""

_IMPLIED_BY: Final = {
    Operation.DESCRIBE: (Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER),
    Operation.DESCRIBE_CONFIGS: (Operation.ALTER_CONFIGS,),
}
"""Who is allowed one of these is allowed that too. Who is denied one is not denied it."""

_Pattern: TypeAlias = tuple[ResourceType, PatternType, str]


class AclTable:
    """The part of the cluster's state that says who may do what."""

    def __init__(self) -> None:
        self._acls: dict[Acl, None] = {}
        self._by_pattern: dict[_Pattern, list[Acl]] = {}
        self._prefix_lengths: dict[ResourceType, dict[int, int]] = {}
        """By type: the lengths of the prefixes that have ACLs, and how many ACLs each has."""
        self.revision = 0
        """How often they have changed; two states that have come apart may share one."""

    def __len__(self) -> int:
        return len(self._acls)

    def __iter__(self) -> Iterator[Acl]:
        """In the order of their coming."""
        return iter(self._acls)

    def __contains__(self, acl: object) -> bool:
        return acl in self._acls

    def alter(self, added: Sequence[Acl], removed: Sequence[Acl]) -> Callable[[], None]:
        """What removes some and adds others. Raises `RequestError` if there would be too many.

        What is there already is not added, and what is not there is not removed.
        """
        gone = set(removed) & self._acls.keys()
        after = len(self._acls.keys() - gone | set(added))
        if after > max(ACLS_MAX, len(self._acls)):
            raise RequestError(
                ErrorCode.POLICY_VIOLATION,
                f"there would be {after} ACLs, and {ACLS_MAX} are the most: allow more at once, by "
                "prefixes of names",
            )

        def carry_out() -> None:
            self.revision += 1
            for acl in gone:
                self._remove(acl)
            for acl in added:
                self._add(acl)

        return carry_out

    def _add(self, acl: Acl) -> None:
        if acl in self._acls:
            return
        self._acls[acl] = None
        self._by_pattern.setdefault(acl[:3], []).append(acl)
        if acl.pattern is PatternType.PREFIXED:
            lengths = self._prefix_lengths.setdefault(acl.resource_type, {})
            lengths[len(acl.name)] = lengths.get(len(acl.name), 0) + 1

    def _remove(self, acl: Acl) -> None:
        del self._acls[acl]
        alike = self._by_pattern[acl[:3]]
        alike.remove(acl)
        if not alike:
            del self._by_pattern[acl[:3]]
        if acl.pattern is PatternType.PREFIXED:
            lengths = self._prefix_lengths[acl.resource_type]
            lengths[len(acl.name)] -= 1
            if not lengths[len(acl.name)]:
                del lengths[len(acl.name)]

    def allows(
        self,
        principal: str,
        host: str,
        operation: Operation,
        resource_type: ResourceType,
        name: str,
        *,
        otherwise: bool,
    ) -> bool:
        """Whether somebody may do that with that resource. One ACL that denies it outweighs all
        that allow it; what no ACL at all is about is as `otherwise` says."""
        is_allowed, has_acls = False, False
        enough = (operation, Operation.ALL, *_IMPLIED_BY.get(operation, ()))
        for acl in self._of(resource_type, name):
            has_acls = True
            if not _is_about(acl, principal, host):
                continue
            if acl.permission is Permission.DENY:
                if acl.operation in (operation, Operation.ALL):
                    return False
            elif acl.operation in enough:
                is_allowed = True
        return is_allowed if has_acls else otherwise

    def allows_some(
        self,
        principal: str,
        host: str,
        operation: Operation,
        resource_type: ResourceType,
        *,
        otherwise: bool,
    ) -> bool:
        """Whether somebody may do that with some resource of a type, whether there is one or not
        (KIP-679)."""
        about = [
            acl
            for acl in self._acls
            if acl.resource_type is resource_type
            and _is_about(acl, principal, host)
            and acl.operation in (operation, Operation.ALL)
        ]
        denied = [acl for acl in about if acl.permission is Permission.DENY]
        if any(acl.name == WILDCARD and acl.pattern is PatternType.LITERAL for acl in denied):
            return False
        if otherwise:
            return True
        return any(
            acl.permission is Permission.ALLOW and not any(_covers(deny, acl) for deny in denied)
            for acl in about
        )

    def _of(self, resource_type: ResourceType, name: str) -> Iterator[Acl]:
        """All that hold for one resource."""
        by_pattern = self._by_pattern
        yield from by_pattern.get((resource_type, PatternType.LITERAL, name), ())
        if name != WILDCARD:
            yield from by_pattern.get((resource_type, PatternType.LITERAL, WILDCARD), ())
        for length in self._prefix_lengths.get(resource_type, ()):
            if length <= len(name):
                prefix = (resource_type, PatternType.PREFIXED, name[:length])
                yield from by_pattern.get(prefix, ())

    # As a part of a snapshot. Any: JSON's own values

    def body(self) -> list[Any]:
        return [plain_acl(acl) for acl in self._acls]

    @classmethod
    def of(cls, body: Iterable[Any]) -> "AclTable":
        table = cls()
        for each in body:
            table._add(acl_of_plain(each))
        return table


def _is_about(acl: Acl, principal: str, host: str) -> bool:
    return acl.principal in (principal, EVERYBODY) and acl.host in (host, WILDCARD)


def _covers(deny: Acl, allow: Acl) -> bool:
    """Whether what is denied is all that is allowed."""
    if deny.pattern is PatternType.PREFIXED:
        return allow.name.startswith(deny.name) and allow.name != WILDCARD
    return allow.pattern is PatternType.LITERAL and allow.name == deny.name
