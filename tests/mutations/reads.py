"""What keeps reads from being stale where they must not be, and readers from going back."""

from tests.mutations import Mutation


def _confirming(name: str, *, old: str, new: str, killed_by: str) -> Mutation:
    """Of asking a majority whether a leader still leads."""
    return Mutation(
        name=name,
        file="partitions/replication/confirming.py",
        old=old,
        new=new,
        killed_by=f"tests/partitions/replication/test_confirming.py::{killed_by}",
    )


def _away(name: str, file: str, *, old: str, new: str, killed_by: str) -> Mutation:
    """Of reads that another replica serves than the leader."""
    return Mutation(
        name=name, file=file, old=old, new=new, killed_by=f"tests/system/test_reads.py::{killed_by}"
    )


def _stale(name: str, *, old: str, new: str, killed_by: str) -> Mutation:
    """Of how stale a replica is."""
    return Mutation(
        name=name,
        file="partitions/replication/staleness.py",
        old=old,
        new=new,
        killed_by=f"tests/partitions/replication/{killed_by}",
    )


def _known(name: str, *, old: str, new: str, killed_by: str) -> Mutation:
    """Of fetches that are not decoded, because an earlier one was like them."""
    return Mutation(
        name=name,
        file="broker/handlers/fetch_known.py",
        old=old,
        new=new,
        killed_by=f"tests/broker/handlers/test_fetch_known.py::{killed_by}",
    )


def _alike(name: str, *, old: str, new: str, killed_by: str) -> Mutation:
    """Of what makes a fetch one of these."""
    return Mutation(
        name=name,
        file="protocol/one_fetch.py",
        old=old,
        new=new,
        killed_by=f"tests/protocol/test_one_fetch.py::{killed_by}",
    )


MUTATIONS = (
    # A fetch that is like an earlier one
    _known(
        "a known fetch is of a leader that its reader knows",
        old="        or not replica.is_readable(offset, known.leader_epoch)\n",
        new="",
        killed_by="test_a_reader_that_knows_of_another_leader_is_told_so",
    ),
    _known(
        "a known fetch does not keep back what was aborted",
        old="known.isolation == READ_COMMITTED and replica.aborted(records, offset)",
        new="False",
        killed_by="test_readers_of_committed_transactions_stop_where_one_is_open_and_hear_what_was_"
        "aborted",
    ),
    _known(
        "a known fetch is not answered with too little",
        old="    if size_bytes < max(known.min_bytes, 1) or has_more_to_say:\n",
        new="    if has_more_to_say:\n",
        killed_by="test_where_there_is_too_little_it_waits",
    ),
    _alike(
        "a fetch is known only if nothing in it could be missed",
        old="    if frame[body_at:] != body:\n",
        new="    if not body:\n",
        killed_by="test_what_encoding_would_not_give_is_decoded_each_time",
    ),
    _alike(
        "a fetch is known by what follows its offset, too",
        old="            or frame[at + _OFFSET.size :] != self._after\n",
        new="",
        killed_by="test_what_differs_in_any_other_byte_is_not_known",
    ),
    # A strict read
    _confirming(
        "only answers to a round that was sent since the question count for it",
        old="lambda node: node == me or answered.get(node, 0) >= number",
        new="lambda node: node == me or answered.get(node, 0) > 0",
        killed_by="test_an_answer_to_an_earlier_round_says_nothing_of_now",
    ),
    _confirming(
        "it takes a majority to be certain of leading",
        old="        return replica.group.config.agreed(\n"
        "            lambda node: node == me or answered.get(node, 0) >= number\n"
        "        )\n",
        new="        return True\n",
        killed_by="test_a_leader_that_is_cut_off_cannot_say_that_it_leads",
    ),
    _confirming(
        "a voter in a later epoch confirms nobody",
        old="            if epoch == asked.epoch:\n",
        new="            if epoch >= asked.epoch:\n",
        killed_by="test_a_voter_in_a_later_epoch_does_not_confirm_and_ends_the_leadership",
    ),
    _confirming(
        "a voter says the epoch that it is in, not the one it is asked about",
        old="        for key, _ in message.groups:\n",
        new="        for key, said in message.groups:\n            return self._outbox.send(\n"
        "                source, ConfirmAnswer(message.number, (GroupEpoch(key, said),))\n"
        "            )\n",
        killed_by="test_a_replica_that_has_begun_anew_confirms_nobody",
    ),
    _confirming(
        "a leader knows what was committed before it once its own epoch has begun",
        old="if not number or not replica.is_serving or replica.epoch != asked.epoch:",
        new="if not number or replica.epoch != asked.epoch:",
        killed_by="test_a_leader_that_has_committed_nothing_of_its_own_yet_waits_until_it_has",
    ),
    # Trees
    Mutation(
        name="observers pull from those before them in the list, so there is no circle",
        file="partitions/replication/observer_tree.py",
        old="observers[:at], (*voters[1:], *voters[:1])",
        new="tuple(n for n in observers if n != observer), (*voters[1:], *voters[:1])",
        killed_by="tests/partitions/replication/test_observer_tree.py::"
        "test_there_are_no_circles_whoever_is_chosen",
    ),
    Mutation(
        name="an observer leaves a parent that is long behind the leader",
        file="partitions/replication/observing.py",
        old="            self._shun(pulling, now)\n        if is_more",
        new="            pass\n        if is_more",
        killed_by="tests/partitions/replication/test_observers.py::"
        "test_a_parent_that_gets_nothing_itself_is_left",
    ),
    Mutation(
        name="observers are told how far their group is committed",
        file="partitions/replication/node_state.py",
        old="        observers = self.observers.of(replica.key)\n",
        new="        observers = ()\n",
        killed_by="tests/partitions/replication/test_observers.py::"
        "test_what_is_committed_comes_down_a_chain_within_some_heartbeats",
    ),
    # Readers who change replicas
    _away(
        "what a reader has seen elsewhere is never out of range at a replica",
        "broker/replicas/fetching.py",
        old="        if epoch > replica.epoch or asked.fetch_offset > replica.high_watermark:\n"
        "            return False\n",
        new="",
        killed_by="test_a_follower_serves_readers_who_name_a_rack_and_parks_what_it_has_not_yet",
    ),
    _away(
        "a leader is certain that it leads before it calls an offset too large",
        "broker/replicas/fetching.py",
        old="        if asked.fetch_offset > replica.log_end and not self.doubted.setdefault("
        "replica, False):\n            return False\n",
        new="",
        killed_by="test_a_leader_that_was_cut_off_calls_no_offset_too_large",
    ),
    _away(
        "nobody is given what lies beyond the end without asking who leads",
        "broker/replicas/replica_reads.py",
        old="            and member.log.start_offset <= offset <= member.log.end_offset\n",
        new="            and member.log.start_offset <= offset\n",
        killed_by="test_a_leader_that_was_cut_off_calls_no_offset_too_large",
    ),
    _away(
        "a replica that is too far behind sends its readers back",
        "broker/replicas/fetching.py",
        old="        replica.check_fresh(asked.fetch_offset, self._request.isolation_level, "
        "self._lag_max_ms)\n",
        new="",
        killed_by="test_a_follower_serves_readers_who_name_a_rack_and_parks_what_it_has_not_yet",
    ),
    _away(
        "a replica that is behind and does not know since when sends its readers back",
        "broker/replicas/replica_reads.py",
        old="is_behind if staleness_ms is None else",
        new="False if staleness_ms is None else",
        killed_by="test_a_replica_that_was_away_sends_readers_back_until_it_has_caught_up",
    ),
    _stale(
        "who hears its leader again lacks what came since it heard it last",
        old="self._spoken(before.node) if own",
        new="now if own",
        killed_by="test_observers.py::"
        "test_who_hears_its_leader_again_is_as_stale_as_before_until_it_has_what_it_missed",
    ),
    _stale(
        "who was behind when it began knows nothing of how stale it is",
        old="if own >= before.committed else None\n",
        new="if own >= before.committed else now\n",
        killed_by="test_staleness.py::"
        "test_who_was_behind_before_it_heard_anything_does_not_know_since_when",
    ),
    _away(
        "a replica that is cut off does not keep readers who have all that it has",
        "broker/replicas/replica_reads.py",
        old="            has_more = offset < self.end_for(isolation)\n",
        new="            has_more = True\n",
        killed_by="test_a_follower_that_is_cut_off_gives_what_it_has_and_then_sends_readers_away",
    ),
)
