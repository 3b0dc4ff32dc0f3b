"""What keeps requests from going past the gates."""

from tests.mutations import Mutation

_ACCESS = "broker/access/access.py"
_GATED = "broker/access/gated.py"
_RECORDS = "broker/access/gates/records.py"
_PARTITIONS = "broker/access/gates/partitions.py"
_TOPICS = "broker/access/gates/topics.py"
_GROUPS = "broker/access/gates/groups.py"
_OFFSETS = "broker/access/gates/offsets.py"
_TRANSACTIONS = "broker/access/gates/transactions.py"
_TESTS = "tests/broker/access/"
_OF_ACCESS = _TESTS + "test_access.py::"
_OF_GATES = _TESTS + "test_gates.py::"
_KNOWN = _TESTS + "test_known_requests.py::"
_SESSIONS = _TESTS + "test_fetch_sessions.py::"
_SHOWN = _TESTS + "test_what_is_shown.py::"
_IDS = _TESTS + "test_unknown_ids.py::"
_PATTERNS = _TESTS + "test_patterns.py::"
_CHANGED = (
    _KNOWN + "test_they_are_decoded_again_when_an_acl_has_changed_and_refused_where_it_is_gone"
)

MUTATIONS = (
    Mutation(
        name="answers about who may do what end with the ACLs they came from",
        file=_ACCESS,
        old="            self.revision += 1\n            self._answers.clear()",
        new="            self.revision += 1",
        killed_by=_OF_ACCESS + "test_a_change_holds_for_who_has_asked_before",
    ),
    Mutation(
        name="another state's ACLs are other ACLs",
        file=_ACCESS,
        old="followed is None or followed[0] is not acls or followed[1] != acls.revision",
        new="followed is None or followed[1] != acls.revision",
        killed_by=_OF_ACCESS + "test_another_state_is_followed_though_it_has_changed_as_often",
    ),
    Mutation(
        name="few answers about who may do what are remembered",
        file=_ACCESS,
        old="            if len(self._answers) >= _REMEMBERED_MAX:\n",
        new="            if not self._answers:\n",
        killed_by=_OF_ACCESS
        + "test_few_answers_are_remembered_and_none_about_what_has_a_long_name",
    ),
    Mutation(
        name="a client's host is compared in the form that ACLs have",
        file=_ACCESS,
        old="            principal,\n            _host_of(host),",
        new="            principal,\n            host,",
        killed_by=_OF_ACCESS + "test_a_host_is_the_same_however_its_address_is_written",
    ),
    Mutation(
        name="requests that are known again are decoded again when an ACL has changed",
        file=_GATED,
        old="            session.one_batches = session.one_fetches = None\n",
        new="",
        killed_by=_CHANGED,
    ),
    Mutation(
        name="what was not let through whole is not known again",
        file=_GATED,
        old="        if passed.request is request:\n            self._handler.decoded",
        new="        if request is not None:\n            self._handler.decoded",
        killed_by=_KNOWN + "test_what_is_refused_is_never_known",
    ),
    Mutation(
        name="an API without a gate is not served",
        file=_GATED,
        old="        return key in self._handlers and key in GATES",
        new="        return key in self._handlers",
        killed_by=_OF_ACCESS + "test_an_api_without_a_gate_is_not_served",
    ),
    Mutation(
        name="each request of a burst is looked at",
        file="broker/handlers/produce_bursts.py",
        old="            or not _is_allowed(node, request, session)\n",
        new="",
        killed_by=_KNOWN + "test_in_a_burst_each_request_is_looked_at",
    ),
    Mutation(
        name="what waits for no answer is refused as a whole",
        file=_RECORDS,
        old="    if request.acks == 0 and passed.request is not request:",
        new="    if request.acks == 0 and passed.request is None:",
        killed_by=_KNOWN + "test_what_waits_for_no_answer_loses_its_connection_and_writes_nothing",
    ),
    Mutation(
        name="a fetch session ends when an ACL changes",
        file=_RECORDS,
        old="        request.session_id,\n        revision,\n    ):",
        new="        request.session_id,\n        connection.allowed_fetch_session[1],\n    ):",
        killed_by=_SESSIONS + "test_when_an_acl_has_changed_the_client_says_again_what_it_wants",
    ),
    Mutation(
        name="a fetch session is its connection's",
        file=_RECORDS,
        old="    if request.session_epoch > _BEGINS and connection.allowed_fetch_session != (",
        new="    if connection.allowed_fetch_session[0] and connection.allowed_fetch_session != (",
        killed_by=_SESSIONS + "test_nobody_goes_on_with_that_of_another",
    ),
    Mutation(
        name="a partition that is refused is not passed on",
        file=_PARTITIONS,
        old="                allowed.append(topic)\n            else:\n",
        new="                pass\n            allowed.append(topic)\n            if code:\n",
        killed_by=_KNOWN + "test_of_a_request_what_is_allowed_is_done",
    ),
    Mutation(
        name="who asks for all topics is told of those it may describe",
        file=_TOPICS,
        old="        return Passed(request, lambda response: _shown(visitor, response))",
        new="        return Passed(request)",
        killed_by=_SHOWN + "test_topics",
    ),
    Mutation(
        name="a topic is made by first use for who may create it",
        file=_TOPICS,
        old="else _creation_error(visitor, name)",
        new="else None",
        killed_by=_SHOWN + "test_by_first_use_a_topic_is_made_for_who_may_create_it",
    ),
    Mutation(
        name="pages of topics have those that may be described",
        file=_TOPICS,
        old="        names = _describable(visitor)",
        new="        names = [each.name for each in visitor.node.topics]",
        killed_by=_SHOWN + "test_pages_of_topics[1]",
    ),
    Mutation(
        name="what a topic is called is not told to who may not know it",
        file=_TOPICS,
        old="            if asked.name is None:\n",
        new="            if asked is None:\n",
        killed_by=_SHOWN + "test_a_topic_that_is_asked_for_by_its_id_keeps_its_name",
    ),
    Mutation(
        name="a new topic's configs are told to who may describe them",
        file=_TOPICS,
        old="    if topic.error_code or visitor.may(",
        new="    if topic.error_code or visitor or visitor.may(",
        killed_by=_SHOWN + "test_what_a_new_topic_is_like",
    ),
    Mutation(
        name="groups are listed to who may describe them",
        file=_GROUPS,
        old="if visitor.may(Operation.DESCRIBE, GROUP, each.group_id)",
        new="if each.group_id",
        killed_by=_SHOWN + "test_groups",
    ),
    Mutation(
        name="a group does not tell of topics that are not to be known",
        file=_GROUPS,
        old="        if error is not None:\n            # Which",
        new="        if error is visitor:\n            # Which",
        killed_by=_SHOWN + "test_a_group_with_a_topic_that_is_not_to_be_known",
    ),
    Mutation(
        name="all commits of a group are those of topics that may be described",
        file=_OFFSETS,
        old="        return self._visitor.may(Operation.DESCRIBE, TOPIC, topic.name)",
        new="        return bool(topic.name)",
        killed_by=_SHOWN + "test_commits[8]",
    ),
    Mutation(
        name="transactional ids are listed to who may describe them",
        file=_TRANSACTIONS,
        old="if visitor.may(Operation.DESCRIBE, TRANSACTIONAL_ID, each.transactional_id)",
        new="if each.transactional_id",
        killed_by=_SHOWN + "test_transactional_ids",
    ),
    Mutation(
        name="an idempotent producer may write somewhere",
        file=_TRANSACTIONS,
        old="        visitor.demand(Operation.IDEMPOTENT_WRITE, CLUSTER)",
        new="        pass",
        killed_by=_OF_GATES + "test_a_client_needs_all_of_it_and_no_more[InitProducerId-5_1]",
    ),
    Mutation(
        name="metadata by an id is what the handler goes by, whatever name is with it",
        file=_TOPICS,
        old="    if name is None or asked.topic_id != ZERO_UUID:",
        new="    if name is None:",
        killed_by=_SHOWN + "test_a_topic_by_its_id_is_not_to_be_known_by_the_name_of_another",
    ),
    Mutation(
        name="who deletes by an id that is not known yet is not passed on",
        file=_TOPICS,
        old="        error = _UNKNOWN_ID if name is None else visitor.refused(",
        new="        error = None if name is None else visitor.refused(",
        killed_by=_IDS + "test_a_handler_that_knows_more_is_not_asked",
    ),
    Mutation(
        name="requests by an id that is not known yet are not known again",
        file=_GATED,
        old="        if not passed.is_lasting:",
        new="        if passed.request is None:",
        killed_by=_IDS + "test_its_like_is_not_known_again[False]",
    ),
    Mutation(
        name="no fetch session goes on with an id that was not known",
        file=_RECORDS,
        old="    if not passed.is_lasting:",
        new="    if passed.request is None:",
        killed_by=_IDS + "test_a_fetch_session_does_not_go_on_with_it",
    ),
    Mutation(
        name="in a burst nobody writes in a transaction without its id",
        file="broker/handlers/produce_bursts.py",
        old="        and not any(says_transactional(data.records) "
        "for data in topic.partition_data)\n",
        new="",
        killed_by=_KNOWN + "test_nobody_writes_in_a_transaction_without_its_id",
    ),
    Mutation(
        name="a pattern matches what its member may know of",
        file="partitions/state_machines/groups/consumer/pattern.py",
        old="frozenset(filter(may_know, self.matching))",
        new="self.matching",
        killed_by=_PATTERNS + "test_a_pattern_matches_what_a_client_may_know_of",
    ),
    Mutation(
        name="the topics of patterns are looked at again when an ACL has changed",
        file=_ACCESS,
        old="            self.on_changed()\n",
        new="",
        killed_by=_PATTERNS + "test_what_it_may_know_of_later_is_there_later",
    ),
)
