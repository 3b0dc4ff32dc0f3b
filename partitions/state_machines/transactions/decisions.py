"""What each request comes to: an answer, and what the log is to say before it is given.

None of them changes anything. Whoever asks about an id while a change of it is on its way to the
log does not come here: it is told CONCURRENT_TRANSACTIONS.
"""

from typing import NamedTuple

from tidemark.partitions.state_machines.transactions import transitions
from tidemark.partitions.state_machines.transactions.requests import (
    Add,
    Answer,
    End,
    Init,
    ProducerAnswer,
    Verify,
    VerifyAnswer,
)
from tidemark.partitions.state_machines.transactions.settings import TransactionSettings
from tidemark.partitions.state_machines.transactions.transaction import (
    EPOCH_MAX,
    Transaction,
    TransactionState,
)
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.types import NO_PRODUCER


class Decision(NamedTuple):
    answer: Answer
    becomes: Transaction | None = None
    """What the log must have first; None where nothing changes."""
    forgiven_epoch: int | None = None
    """An epoch that was replaced, and whose producer may nevertheless go on with `Init`: it is the
    same one, which lost an answer or was late."""


def decide_init(
    old: Transaction | None,
    request: Init,
    forgiven_epoch: int | None,
    *,
    wall_ms: int,
    settings: TransactionSettings,
) -> Decision:
    """A producer takes an id over. What is open is aborted first; until then it asks again."""
    if not 0 < request.timeout_ms <= settings.timeout_max_ms:
        return _refuse_producer(ErrorCode.INVALID_TRANSACTION_TIMEOUT)
    if old is None:
        return _first_session(request, wall_ms)
    is_retry = _is_own_past(old, request, forgiven_epoch)
    if request.producer_id != NO_PRODUCER and not is_retry and not _is_current(old, request):
        return _refuse_producer(ErrorCode.PRODUCER_FENCED)
    if old.state.is_prepared:
        return _refuse_producer(ErrorCode.CONCURRENT_TRANSACTIONS)
    own_epoch = request.epoch if request.producer_id != NO_PRODUCER else None
    if old.state is TransactionState.ONGOING:
        answer = ProducerAnswer(error=ErrorCode.CONCURRENT_TRANSACTIONS)
        return Decision(answer, fenced(old, wall_ms=wall_ms), own_epoch)
    if is_retry and old.state is TransactionState.EMPTY:
        return Decision(_producer(old), None, forgiven_epoch)
    if old.is_exhausted and request.fresh_id is None:
        return _refuse_producer(ErrorCode.CONCURRENT_TRANSACTIONS)
    new = transitions.taken_over(
        old, timeout_ms=request.timeout_ms, wall_ms=wall_ms, fresh_id=request.fresh_id
    )
    return Decision(_producer(new), new, own_epoch)


def decide_add(old: Transaction | None, request: Add, *, wall_ms: int) -> Decision:
    """Put partitions into the transaction; begin it with the first."""
    error = _check_producer(old, request)
    if error is not ErrorCode.NONE or old is None:
        return Decision(Answer(error=error))
    if old.state.is_prepared:
        return Decision(Answer(error=ErrorCode.CONCURRENT_TRANSACTIONS))
    if old.state is TransactionState.ONGOING and request.partitions <= old.partitions:
        return Decision(Answer())
    new = transitions.extended(
        old, request.partitions, wall_ms=wall_ms, bumps_epoch=request.bumps_epoch
    )
    return Decision(Answer(), new)


def verified(old: Transaction | None, request: Verify) -> VerifyAnswer:
    """Whether partitions are in the open transaction; where one is not, nothing may be appended."""
    error = _check_producer(old, request)
    if error is not ErrorCode.NONE or old is None:
        return VerifyAnswer(error=error)
    if old.state.is_prepared:
        return VerifyAnswer(error=ErrorCode.CONCURRENT_TRANSACTIONS)
    is_open = old.state is TransactionState.ONGOING
    return VerifyAnswer(missing=request.partitions - (old.partitions if is_open else frozenset()))


def decide_end(old: Transaction | None, request: End, *, wall_ms: int) -> Decision:
    """Commit or abort. The same answer again to a producer that did not hear the first."""
    if old is not None and request.bumps_epoch and _has_ended_already(old, request):
        return _answer_again(old, request, wall_ms)
    error = _check_producer(old, request)
    if error is not ErrorCode.NONE or old is None:
        return _refuse_producer(error)
    if old.state.is_prepared:
        # Where ends raise the epoch, an end in the new one is of the next transaction, and has to
        # wait. Where they do not, it is about this one: the same decision again, or another.
        has_to_wait = request.bumps_epoch or old.state.is_commit == request.is_commit
        return _refuse_producer(
            ErrorCode.CONCURRENT_TRANSACTIONS if has_to_wait else ErrorCode.INVALID_TXN_STATE
        )
    if old.state is not TransactionState.ONGOING:
        return _end_nothing(old, request, wall_ms)
    return _end(old, request, wall_ms)


def fenced(old: Transaction, *, wall_ms: int) -> Transaction:
    """The open transaction aborted, whatever its producer may still send."""
    return transitions.prepared(
        old,
        is_commit=False,
        raises_epoch=old.epoch < EPOCH_MAX,
        bumps_epoch=old.bumps_epoch,
        wall_ms=wall_ms,
    )


def _first_session(request: Init, wall_ms: int) -> Decision:
    """Also of a producer that has an id, and whose transactional id was not used for so long that
    it was forgotten: what it had is over, and it goes on with an id that nobody has had."""
    if request.fresh_id is None:
        return _refuse_producer(ErrorCode.CONCURRENT_TRANSACTIONS)
    new = Transaction(
        producer_id=request.fresh_id, epoch=0, timeout_ms=request.timeout_ms, updated_ms=wall_ms
    )
    return Decision(_producer(new), new)


def _end(old: Transaction, request: End, wall_ms: int) -> Decision:
    fresh_id = request.fresh_id if old.is_exhausted and request.bumps_epoch else None
    if old.is_exhausted and request.bumps_epoch and fresh_id is None:
        return _refuse_producer(ErrorCode.CONCURRENT_TRANSACTIONS)
    new = transitions.prepared(
        old,
        is_commit=request.is_commit,
        raises_epoch=request.bumps_epoch,
        bumps_epoch=request.bumps_epoch,
        wall_ms=wall_ms,
        fresh_id=fresh_id,
    )
    return Decision(_producer(new), new, request.epoch if request.bumps_epoch else None)


def _end_nothing(old: Transaction, request: End, wall_ms: int) -> Decision:
    """No transaction is open. An abort that raises the epoch is done all the same: it fences what
    of the producer's is late (KIP-890). The same end again is answered as the first was."""
    if request.bumps_epoch and not request.is_commit:
        return _end(old, request, wall_ms)
    is_again = old.state is not TransactionState.EMPTY and (
        old.state.is_commit == request.is_commit and not request.bumps_epoch
    )
    return Decision(_producer(old)) if is_again else _refuse_producer(ErrorCode.INVALID_TXN_STATE)


def _has_ended_already(old: Transaction, request: End) -> bool:
    """Whether the request is of the epoch before, which an end of its own has replaced, or an abort
    that it did not ask for."""
    if not old.bumps_epoch or old.state in (TransactionState.EMPTY, TransactionState.ONGOING):
        return False
    if old.producer_id == request.producer_id:
        return old.epoch == request.epoch + 1
    return (
        old.previous_producer_id == request.producer_id
        and request.epoch == EPOCH_MAX - 1
        and old.epoch == 0
    )


def _answer_again(old: Transaction, request: End, wall_ms: int) -> Decision:
    if old.state.is_prepared:
        return _refuse_producer(ErrorCode.CONCURRENT_TRANSACTIONS)
    if old.state.is_commit != request.is_commit:
        # A commit whose transaction was aborted is none that was sent again: its time was up, or
        # another producer has come.
        return _refuse_producer(
            ErrorCode.PRODUCER_FENCED if request.is_commit else ErrorCode.INVALID_TXN_STATE
        )
    if old.epoch < EPOCH_MAX:
        return Decision(_producer(old))
    # The last epoch has fenced it, and an abort may go on, but not in that one.
    if request.fresh_id is None:
        return _refuse_producer(ErrorCode.CONCURRENT_TRANSACTIONS)
    new = transitions.renewed(old, wall_ms=wall_ms, fresh_id=request.fresh_id)
    return Decision(_producer(new), new, request.epoch)


def _is_current(old: Transaction, request: Init) -> bool:
    return old.producer_id == request.producer_id and old.epoch == request.epoch


def _is_own_past(old: Transaction, request: Init, forgiven_epoch: int | None) -> bool:
    """Whether the request comes from the very producer whose epoch was replaced last."""
    if request.producer_id == NO_PRODUCER or request.epoch != forgiven_epoch:
        return False
    return request.producer_id in (old.producer_id, old.previous_producer_id)


def _check_producer(old: Transaction | None, request: Add | Verify | End) -> ErrorCode:
    if old is None or old.producer_id != request.producer_id:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    is_current = old.epoch == request.epoch < EPOCH_MAX
    return ErrorCode.NONE if is_current else ErrorCode.PRODUCER_FENCED


def _producer(new: Transaction) -> ProducerAnswer:
    """The id and epoch that the producer goes on with once its transaction is over."""
    if new.next_producer_id != NO_PRODUCER:
        return ProducerAnswer(producer_id=new.next_producer_id, epoch=0)
    return ProducerAnswer(producer_id=new.producer_id, epoch=new.epoch)


def _refuse_producer(error: ErrorCode) -> Decision:
    return Decision(ProducerAnswer(error=error))
