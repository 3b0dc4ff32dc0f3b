"""Bytes to values and back: types, errors, frames, message schemas, record batches. Imports nothing of ours."""
