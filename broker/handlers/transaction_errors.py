"""Errors of transactions as each version has them (trap P15)."""

from tidemark.protocol.errors import ErrorCode


def in_version(code: ErrorCode, version: int, *, fenced_since: int) -> ErrorCode:
    """A fenced producer was told of its epoch before there was an error of its own."""
    if code is ErrorCode.PRODUCER_FENCED and version < fenced_since:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return code


def abortable_in_version(code: ErrorCode, version: int, *, since: int) -> ErrorCode:
    """That a transaction has to be aborted was told as a wrong state before (KIP-890)."""
    if code is ErrorCode.TRANSACTION_ABORTABLE and version < since:
        return ErrorCode.INVALID_TXN_STATE
    return code
