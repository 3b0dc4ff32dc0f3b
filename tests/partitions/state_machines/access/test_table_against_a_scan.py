"""The table of ACLs is asked by an index; a scan of all of them must say the same."""

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from tests.partitions.state_machines.access import rules_of_kafka as kafka
from tests.partitions.state_machines.access.rules_of_kafka import ACLS, HOSTS, NAMES, PRINCIPALS
from tidemark.partitions.state_machines.access.acls import Acl
from tidemark.partitions.state_machines.access.table import AclTable
from tidemark.protocol.acls import Operation, ResourceType

FRESH = "#"
"""Occurs in no name that has an ACL."""


class AclTableAgainstAScan(RuleBasedStateMachine):
    """Whatever came and went, the answers are those that a scan of the ACLs gives."""

    def __init__(self) -> None:
        super().__init__()
        self.table = AclTable()
        self.acls: dict[Acl, None] = {}

    @rule(
        added=st.lists(ACLS, max_size=4),
        removed=st.lists(ACLS, max_size=2),
        some=st.lists(st.integers(0, 99), max_size=4),
    )
    def alter(self, added: list[Acl], removed: list[Acl], some: list[int]) -> None:
        there = list(self.acls)
        removed += [there[each % len(there)] for each in some if there]
        before = self.table.revision
        self.table.alter(added, removed)()
        assert self.table.revision > before
        self.acls = {each: None for each in there if each not in removed}
        self.acls |= dict.fromkeys(added)

    @rule()
    def come_back_from_a_snapshot(self) -> None:
        self.table = AclTable.of(self.table.body())

    @rule(
        operation=st.sampled_from(kafka.OPERATIONS),
        resource_type=st.sampled_from(kafka.TYPES),
        name=st.sampled_from(NAMES) | st.text("abc*", max_size=5),
        otherwise=st.booleans(),
    )
    def ask(
        self, operation: Operation, resource_type: ResourceType, name: str, otherwise: bool
    ) -> None:
        for principal in PRINCIPALS:
            for host in HOSTS:
                question = (principal, host, operation, resource_type, name)
                answer = kafka.allows(self.acls, *question, otherwise=otherwise)
                assert self.table.allows(*question, otherwise=otherwise) is answer

    @rule(
        operation=st.sampled_from(kafka.OPERATIONS),
        resource_type=st.sampled_from(kafka.TYPES),
        otherwise=st.booleans(),
    )
    def ask_for_some(
        self, operation: Operation, resource_type: ResourceType, otherwise: bool
    ) -> None:
        names = {FRESH} | {each.name + end for each in self.acls for end in ("", FRESH)}
        for principal in PRINCIPALS:
            question = (principal, HOSTS[0], operation, resource_type)
            answer = self.table.allows_some(*question, otherwise=otherwise)
            assert answer is any(
                kafka.allows(self.acls, *question, name, otherwise=otherwise) for name in names
            )
            if operation in {Operation.READ, Operation.WRITE}:
                assert answer is kafka.allows_some(self.acls, *question, otherwise=otherwise)

    @invariant()
    def the_same_are_there(self) -> None:
        assert set(self.table) == self.acls.keys()
        assert len(self.table) == len(self.acls)
        assert all(each in self.table for each in self.acls)


TestAclTableAgainstAScan = AclTableAgainstAScan.TestCase
