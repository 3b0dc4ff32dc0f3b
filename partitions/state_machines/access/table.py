"""The ACLs of a cluster, and what follows from them.

What is asked is found by who asks, and by the resource's name: literally, by `*`, and by each of
the lengths that prefixes have. So a question costs by how many lengths there are, and not by how
many ACLs, be they all of one resource.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias, TypeVar

from tidemark.partitions.state_machines.access.acls import EVERYBODY, Acl, acl_of_plain, plain_acl
from tidemark.partitions.state_machines.access.prefixes import begins_with_one, outermost
from tidemark.protocol.acls import WILDCARD, Operation, PatternType, Permission, ResourceType
from tidemark.protocol.errors import ErrorCode, RequestError

ACLS_MAX: Final = 10_000
NAMES_BYTES_MAX: Final = 4 * 1024 * 1024
"""Of all their resources and principals: all brokers hold them in memory, and in every snapshot of
the metadata."""

_IMPLIED_BY: Final = {
    Operation.DESCRIBE: (Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER),
    Operation.DESCRIBE_CONFIGS: (Operation.ALTER_CONFIGS,),
}
"""Who is allowed one of these is allowed that too. Who is denied one is not denied it."""

_Who: TypeAlias = tuple[str, str]
"""A principal and a host, as ACLs name them."""
_Pattern: TypeAlias = tuple[ResourceType, PatternType, str]
K = TypeVar("K")


def _bit(operation: Operation, permission: Permission) -> int:
    """What stands for an ACL among those that differ from it in nothing else."""
    return 1 << 2 * operation + (permission is Permission.ALLOW)


def _bits(permission: Permission, *operations: Operation) -> int:
    return sum({_bit(each, permission) for each in (*operations, Operation.ALL)})


_ALLOWING: Final = {
    each: _bits(Permission.ALLOW, each, *_IMPLIED_BY.get(each, ())) for each in Operation
}
_DENYING: Final = {each: _bits(Permission.DENY, each) for each in Operation}
"""The bits that allow what is asked, and those that deny it."""


class AclTable:
    """The part of the cluster's state that says who may do what."""

    def __init__(self) -> None:
        self._acls: dict[Acl, None] = {}
        self._said: dict[_Who, dict[_Pattern, int]] = {}
        """The bits of those that are about somebody, by what they are about."""
        self._counts: dict[_Pattern, int] = {}
        """How many have that pattern, whoever they are about."""
        self._prefix_lengths: dict[ResourceType, dict[int, int]] = {}
        """By type: the lengths of the prefixes that have ACLs, and how many ACLs each has."""
        self._names_bytes = 0
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
        gone = {acl: None for acl in removed if acl in self._acls}
        new = {acl: None for acl in added if acl in gone or acl not in self._acls}
        after = len(self._acls) - len(gone) + len(new)
        if after > max(ACLS_MAX, len(self._acls)):
            raise RequestError(
                ErrorCode.POLICY_VIOLATION,
                f"there would be {after} ACLs, and {ACLS_MAX} are the most: allow more at once, by "
                "prefixes of names",
            )
        bytes_after = self._names_bytes - _names_bytes(gone) + _names_bytes(new)
        if bytes_after > max(NAMES_BYTES_MAX, self._names_bytes):
            raise RequestError(
                ErrorCode.POLICY_VIOLATION,
                f"the names in all ACLs would have {bytes_after} bytes, and {NAMES_BYTES_MAX} are "
                "the most: use prefixes of names",
            )

        def carry_out() -> None:
            self.revision += 1
            for acl in gone:
                self._remove(acl)
            for acl in new:
                self._add(acl)

        return carry_out

    def _add(self, acl: Acl) -> None:
        if acl in self._acls:
            return
        self._acls[acl] = None
        pattern = acl[:3]
        said = self._said.setdefault((acl.principal, acl.host), {})
        said[pattern] = said.get(pattern, 0) | _bit(acl.operation, acl.permission)
        self._count(acl, 1)

    def _remove(self, acl: Acl) -> None:
        del self._acls[acl]
        pattern, who = acl[:3], (acl.principal, acl.host)
        said = self._said[who]
        said[pattern] &= ~_bit(acl.operation, acl.permission)
        if not said[pattern]:
            del said[pattern]
        if not said:
            del self._said[who]
        self._count(acl, -1)

    def _count(self, acl: Acl, by: int) -> None:
        self._names_bytes += by * _names_bytes([acl])
        _add_to(self._counts, acl[:3], by)
        if acl.pattern is PatternType.PREFIXED:
            lengths = self._prefix_lengths.setdefault(acl.resource_type, {})
            _add_to(lengths, len(acl.name), by)

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
        that allow it; what no ACL at all is about is as `otherwise` says. The host is to be as
        `host_of` writes it."""
        said_of_somebody = self._about(principal, host)
        said, has_acls = 0, False
        for pattern in self._patterns_of(resource_type, name):
            if pattern in self._counts:
                has_acls = True
                for each in said_of_somebody:
                    said |= each.get(pattern, 0)
        if not has_acls:
            return otherwise
        return not said & _DENYING[operation] and bool(said & _ALLOWING[operation])

    def allows_some(
        self,
        principal: str,
        host: str,
        operation: Operation,
        resource_type: ResourceType,
        *,
        otherwise: bool,
    ) -> bool:
        """Whether there is a name so that somebody may do that with a resource of it, whether there
        is one or not (KIP-679)."""
        allowed, denied = set[_Pattern](), set[_Pattern]()
        for said in self._about(principal, host):
            for pattern, bits in said.items():
                if pattern[0] is resource_type:
                    if bits & _ALLOWING[operation]:
                        allowed.add(pattern)
                    if bits & _DENYING[operation]:
                        denied.add(pattern)
        all_of_type = (resource_type, PatternType.LITERAL, WILDCARD)
        if all_of_type in denied:
            return False
        # However many names and prefixes have ACLs, there is a name that has none of them.
        if all_of_type in allowed or (otherwise and all_of_type not in self._counts):
            return True
        prefixes = outermost(name for _, kind, name in denied if kind is PatternType.PREFIXED)
        return any(not begins_with_one(each[2], prefixes) for each in allowed - denied)

    def _about(self, principal: str, host: str) -> list[Mapping[_Pattern, int]]:
        """What is said of somebody: by name or as one of all, there or wherever it is."""
        known = self._said
        whom = (principal, host), (principal, WILDCARD), (EVERYBODY, host), (EVERYBODY, WILDCARD)
        return [known[each] for each in whom if each in known]

    def _patterns_of(self, resource_type: ResourceType, name: str) -> Iterator[_Pattern]:
        """All that one resource has, if there are ACLs with them."""
        yield resource_type, PatternType.LITERAL, name
        yield resource_type, PatternType.LITERAL, WILDCARD
        for length in self._prefix_lengths.get(resource_type, ()):
            if length <= len(name):
                yield resource_type, PatternType.PREFIXED, name[:length]

    # As a part of a snapshot. Any: JSON's own values

    def body(self) -> list[Any]:
        return [plain_acl(acl) for acl in self._acls]

    @classmethod
    def of(cls, body: Iterable[Any]) -> "AclTable":
        table = cls()
        for each in body:
            table._add(acl_of_plain(each))
        return table


def _names_bytes(acls: Iterable[Acl]) -> int:
    return sum(len(acl.name.encode()) + len(acl.principal.encode()) for acl in acls)


def _add_to(counts: dict[K, int], what: K, by: int) -> None:
    """What there is none of has no count."""
    counts[what] = counts.get(what, 0) + by
    if not counts[what]:
        del counts[what]
