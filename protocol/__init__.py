"""Bytes to values and back: types, errors, frames, schemas, record batches. Pure."""
