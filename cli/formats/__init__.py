"""Ways to write a record as bytes: percent formats (rpk's and kcat's), JSON lines, templates.

All are values in, bytes out. Each is compiled once, into a `Formatter`, and then called for every
record, so what can be decided from the format alone is decided there.
"""
