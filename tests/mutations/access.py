"""What keeps everybody from what ACLs do not allow them."""

from tests.mutations import Mutation

_ACLS = "partitions/state_machines/access/acls.py"
_HOSTS = "partitions/state_machines/access/hosts.py"
_PREFIXES = "partitions/state_machines/access/prefixes.py"
_TABLE = "partitions/state_machines/access/table.py"
_CLUSTER = "partitions/state_machines/cluster.py"
_TESTS = "tests/partitions/state_machines/access/"
_OF_ACLS = _TESTS + "test_acls.py::"
_OF_HOSTS = _TESTS + "test_hosts.py::"
_OF_TABLE = _TESTS + "test_table.py::"
_OF_CHANGES = _TESTS + "test_table_changes.py::"
_OF_COMMANDS = _TESTS + "test_alter_acls.py::"
_DENIED = _OF_TABLE + "test_an_acl_that_denies_outweighs_all_that_allow"
_SOME = _OF_TABLE + "test_something_is_allowed_unless_all_that_is_allowed_is_denied"

MUTATIONS = (
    Mutation(
        name="a topic that may not be made is not made where all would be meant without it",
        file="broker/access/gates/topics.py",
        old="        looking = replace(request, allow_auto_topic_creation=False)\n",
        new="        looking = request\n",
        killed_by="tests/broker/access/test_old_versions.py"
        "::test_who_may_not_make_a_topic_does_not_by_asking_for_it[0]",
    ),
    Mutation(
        name="an ACL that denies outweighs those that allow",
        file=_TABLE,
        old="        return not said & _DENYING[operation] and bool(said & _ALLOWING[operation])",
        new="        return bool(said & _ALLOWING[operation])",
        killed_by=_DENIED,
    ),
    Mutation(
        name="who is denied all is denied each",
        file=_TABLE,
        old="_DENYING: Final = {each: _bits(Permission.DENY, each) for each in Operation}",
        new="_DENYING: Final = {each: _bit(each, Permission.DENY) for each in Operation}",
        killed_by=_OF_TABLE + "test_what_is_denied_implies_nothing",
    ),
    Mutation(
        name="who may read a topic may look at it",
        file=_TABLE,
        old="_IMPLIED_BY.get(each, ())) for each in Operation",
        new="()) for each in Operation if _IMPLIED_BY",
        killed_by=_OF_TABLE + "test_what_is_allowed_implies_that_it_is_looked_at",
    ),
    Mutation(
        name="who may not read a topic may look at it",
        file=_TABLE,
        old="{each: _bits(Permission.DENY, each) for each in Operation}",
        new="{\n    each: _bits(Permission.DENY, each, *_IMPLIED_BY.get(each, ())) "
        "for each in Operation\n}",
        killed_by=_OF_TABLE + "test_what_is_denied_implies_nothing",
    ),
    Mutation(
        name="what is allowed and what is denied are two bits",
        file=_TABLE,
        old="    return 1 << 2 * operation + (permission is Permission.ALLOW)",
        new="    return 1 << operation + (permission is Permission.ALLOW)",
        killed_by=_OF_TABLE + "test_what_is_denied_implies_nothing",
    ),
    Mutation(
        name="what somebody else has an ACL of is not as if there were none",
        file=_TABLE,
        old="            if pattern in self._counts:\n                has_acls = True\n",
        new="            if any(pattern in each for each in said_of_somebody):\n"
        "                has_acls = True\n",
        killed_by=_OF_TABLE + "test_what_any_acl_is_about_is_allowed_to_nobody_else",
    ),
    Mutation(
        name="a host's ACL is not of every host",
        file=_TABLE,
        old="        said = self._said.setdefault((acl.principal, acl.host), {})",
        new="        said = self._said.setdefault((acl.principal, WILDCARD), {})",
        killed_by=_OF_TABLE + "test_what_is_denied_to_others_or_of_others_is_not_denied",
    ),
    Mutation(
        name="a principal's ACL is not of everybody",
        file=_TABLE,
        old="        said = self._said.setdefault((acl.principal, acl.host), {})",
        new="        said = self._said.setdefault((EVERYBODY, acl.host), {})",
        killed_by=_OF_TABLE + "test_what_is_denied_to_others_or_of_others_is_not_denied",
    ),
    Mutation(
        name="what is denied to everybody here is denied",
        file=_TABLE,
        old="(principal, WILDCARD), (EVERYBODY, host), (EVERYBODY, WILDCARD)",
        new="(principal, WILDCARD), (EVERYBODY, WILDCARD)",
        killed_by=_DENIED,
    ),
    Mutation(
        name="what is denied of all names is denied of each",
        file=_TABLE,
        old="        yield resource_type, PatternType.LITERAL, WILDCARD\n",
        new="",
        killed_by=_DENIED,
    ),
    Mutation(
        name="prefixes of all lengths are looked for",
        file=_TABLE,
        old="            if length <= len(name):\n",
        new="            if length < len(name):\n",
        killed_by=_DENIED,
    ),
    Mutation(
        name="a prefix is looked for while an ACL has its length",
        file=_TABLE,
        old="    if not counts[what]:\n        del counts[what]\n",
        new="    if by < 0:\n        del counts[what]\n",
        killed_by=_OF_TABLE + "test_a_prefix_is_found_whatever_other_prefixes_came_and_went",
    ),
    Mutation(
        name="what is removed allows nothing any more",
        file=_TABLE,
        old="        said[pattern] &= ~_bit(acl.operation, acl.permission)\n",
        new="",
        killed_by=_OF_TABLE + "test_what_is_removed_leaves_others_of_its_resource",
    ),
    Mutation(
        name="what is removed leaves the others of its resource",
        file=_TABLE,
        old="        said[pattern] &= ~_bit(acl.operation, acl.permission)\n",
        new="        said[pattern] = 0\n",
        killed_by=_OF_TABLE + "test_what_is_removed_leaves_others_of_its_resource",
    ),
    Mutation(
        name="when all ACLs of a resource are gone it is as if there had been none",
        file=_TABLE,
        old="        self._count(acl, -1)\n",
        new="        self._count(acl, 0)\n",
        killed_by=_OF_TABLE + "test_what_any_acl_is_about_is_allowed_to_nobody_else",
    ),
    Mutation(
        name="an ACL is added once",
        file=_TABLE,
        old="if acl in gone or acl not in self._acls}",
        new="}",
        killed_by=_OF_CHANGES + "test_the_number_of_acls_is_bounded",
    ),
    Mutation(
        name="an ACL that is removed and added is there",
        file=_TABLE,
        old="if acl in gone or acl not in self._acls}",
        new="if acl not in self._acls}",
        killed_by=_OF_CHANGES + "test_what_is_removed_and_added_at_once_is_there",
    ),
    Mutation(
        name="there are no more ACLs than brokers can hold",
        file=_TABLE,
        old="        if after > max(ACLS_MAX, len(self._acls)):",
        new="        if after > max(ACLS_MAX, len(self._acls)) + 1:",
        killed_by=_OF_CHANGES + "test_the_number_of_acls_is_bounded",
    ),
    Mutation(
        name="there are no longer ACLs than brokers can hold",
        file=_TABLE,
        old="        self._names_bytes += by * _names_bytes([acl])\n",
        new="",
        killed_by=_OF_CHANGES + "test_the_bytes_of_all_names_are_bounded",
    ),
    Mutation(
        name="too many ACLs can be made fewer",
        file=_TABLE,
        old="        if after > max(ACLS_MAX, len(self._acls)):",
        new="        if after > ACLS_MAX:",
        killed_by=_OF_CHANGES + "test_what_was_allowed_more_by_an_earlier_version_can_be_made_less",
    ),
    Mutation(
        name="a change of ACLs is seen by who follows them",
        file=_TABLE,
        old="            self.revision += 1\n",
        new="            self.revision += bool(gone)\n",
        killed_by=_OF_CHANGES + "test_whoever_follows_the_changes_sees_each",
    ),
    Mutation(
        name="who is denied all of a type may do nothing with some",
        file=_TABLE,
        old="        if all_of_type in denied:\n            return False\n",
        new="",
        killed_by=_SOME,
    ),
    Mutation(
        name="where all of a type has an ACL nothing is as if there were none",
        file=_TABLE,
        old="(otherwise and all_of_type not in self._counts)",
        new="otherwise",
        killed_by=_OF_TABLE + "test_a_resource_without_acls_is_something_unless_all_have_some",
    ),
    Mutation(
        name="what is allowed under a prefix that is denied is not something",
        file=_PREFIXES,
        old="    at = bisect_right(prefixes, name)\n",
        new="    at = 0\n",
        killed_by=_SOME,
    ),
    Mutation(
        name="a prefix within a prefix does not hide it",
        file=_PREFIXES,
        old="if not kept or not prefix.startswith(kept[-1]):",
        new="if True:",
        killed_by=_TESTS + "test_prefixes.py",
    ),
    Mutation(
        name="what is allowed alone and denied alone is not something",
        file=_TABLE,
        old="for each in allowed - denied)",
        new="for each in allowed)",
        killed_by=_SOME,
    ),
    Mutation(
        name="an address of IPv6 has one form",
        file=_HOSTS,
        old="    return str(parsed.ipv4_mapped or parsed)",
        new="    return address",
        killed_by=_OF_ACLS + "test_the_forms_of_an_address_are_one_acl_and_one_filter",
    ),
    Mutation(
        name="an IPv4 address in one of IPv6 is the same host",
        file=_HOSTS,
        old="    return str(parsed.ipv4_mapped or parsed)",
        new="    return str(parsed)",
        killed_by=_OF_HOSTS + "test_the_forms_of_an_address_are_one_host",
    ),
    Mutation(
        name="a host with a zone, which no connection has, is refused",
        file=_HOSTS,
        old="    if parsed.scope_id is not None:",
        new="    if parsed.scope_id is None and False:",
        killed_by=_OF_HOSTS + "test_what_no_connection_comes_from_is_no_host",
    ),
    Mutation(
        name="an ACL's names show all they have",
        file=_ACLS,
        old="    return not _CONTROL.search(name) and 0 < len(name.encode()) <= NAME_BYTES_MAX",
        new="    return 0 < len(name.encode()) <= NAME_BYTES_MAX",
        killed_by=_OF_ACLS + "test_what_no_acl_can_be_is_refused",
    ),
    Mutation(
        name="an ACL's names are not long",
        file=_ACLS,
        old="0 < len(name.encode()) <= NAME_BYTES_MAX",
        new="0 < len(name) <= NAME_BYTES_MAX",
        killed_by=_OF_ACLS + "test_what_no_acl_can_be_is_refused",
    ),
    Mutation(
        name="a filter for a resource means the ACLs that hold for it",
        file=_ACLS,
        old="        if self.pattern is PatternType.MATCH:",
        new="        if self.pattern is PatternType.UNKNOWN:",
        killed_by=_OF_ACLS + "test_a_filter_that_matches_means_what_holds_for_that_resource",
    ),
    Mutation(
        name="a filter of a host means no other",
        file=_ACLS,
        old="            and self.host in (None, acl.host)\n",
        new="",
        killed_by=_OF_ACLS + "test_each_part_of_a_filter_has_to_fit",
    ),
    Mutation(
        name="a snapshot keeps the ACLs",
        file=_CLUSTER,
        old='            "acls": self.acls.body(),\n',
        new='            "acls": [],\n',
        killed_by=_OF_COMMANDS + "test_a_snapshot_keeps_them_in_their_order",
    ),
    Mutation(
        name="a snapshot that has lost its ACLs is none",
        file=_CLUSTER,
        old='            if "acls" in body or body["format"] >= _FORMAT_WITH_ACLS:\n',
        new='            if "acls" in body:\n',
        killed_by=_OF_COMMANDS + "test_a_snapshot_of_a_version_with_acls_that_has_none_is_refused",
    ),
    Mutation(
        name="a snapshot from before there were ACLs is read",
        file=_CLUSTER,
        old='            if "acls" in body or body["format"] >= _FORMAT_WITH_ACLS:\n',
        new="            if body:\n",
        killed_by=_OF_COMMANDS + "test_a_snapshot_of_a_version_without_acls_has_none",
    ),
)
