"""What keeps a reader with a fetch session from missing what one without it would be told."""

from typing import Final

from tests.mutations import Mutation

_HANDLER: Final = "tests/broker/handlers/test_fetch.py"


def _rule(name: str, *, old: str, new: str, killed_by: str) -> Mutation:
    return Mutation(
        name=name,
        file="broker/replicas/fetch_sessions.py",
        old=old,
        new=new,
        killed_by=f"tests/broker/replicas/test_fetch_sessions.py::{killed_by}",
    )


MUTATIONS = (
    _rule(
        "a request out of step is refused",
        old="if session.epoch != request.session_epoch:",
        new="if session.epoch > request.session_epoch:",
        killed_by="test_a_request_out_of_step_is_refused",
    ),
    _rule(
        "records are always news",
        old="told != remembered.told or bool(answer.records)",
        new="told != remembered.told",
        killed_by="test_records_are_said_though_the_ends_have_not_moved",
    ),
    _rule(
        "that an error is over is news",
        old="            remembered.told = None  # that it is over will be news\n",
        new="",
        killed_by="test_that_an_error_is_over_is_said",
    ),
    _rule(
        "a new position replaces the one that is remembered",
        old="                remembered.asked = asked\n",
        new="                pass\n",
        killed_by="test_still_partitions_are_not_answered_again",
    ),
    _rule(
        "what is forgotten is not read any more",
        old="                self._partitions.pop((self._key(forgotten), number), None)",
        new="                pass",
        killed_by="test_what_is_forgotten_is_not_answered_any_more",
    ),
    _rule(
        "who is not silent makes room for no smaller reader",
        old="if smallest is None or len(smallest) >= size:",
        new="if smallest is None:",
        killed_by="test_one_that_is_old_makes_room_for_a_larger_one_and_no_other",
    ),
    _rule(
        "what sessions remember is bounded",
        old="if len(session) == 0 or self.partitions > self._partitions_max:",
        new="if len(session) == 0:",
        killed_by="test_what_all_sessions_remember_is_bounded",
    ),
    _rule(
        "a session remembers no name that is none",
        old="        if not _are_names(request.topics):\n            return response\n",
        new="",
        killed_by="test_a_name_that_no_topic_can_have_is_not_remembered",
    ),
    Mutation(
        name="what is at rest is left out only if its reader was told just this",
        file="broker/replicas/fetch_answers.py",
        old="        return self._remembered[at].told == replica.ends\n",
        new="        return True\n",
        killed_by=f"{_HANDLER}::test_in_a_session_what_is_at_rest_is_said_once",
    ),
    Mutation(
        name="who knows of another epoch does not wait where all ends",
        file="broker/replicas/replica_reads.py",
        old="            and offset == member.high_watermark\n"
        "            and epoch in (-1, member.epoch)\n",
        new="            and offset == member.high_watermark\n",
        killed_by=f"{_HANDLER}::test_f10_a_client_is_fenced_by_the_epoch_it_knows",
    ),
    Mutation(
        name="who knows of another epoch is given nothing",
        file="broker/replicas/replica_reads.py",
        old="            and epoch in (-1, member.epoch)\n"
        "            and member.is_serving\n"
        "            and member.log.start_offset",
        new="            and member.is_serving\n            and member.log.start_offset",
        killed_by=f"{_HANDLER}::test_f10_a_client_is_fenced_by_the_epoch_it_knows",
    ),
)
