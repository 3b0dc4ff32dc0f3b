"""Record batches, format v2: their header, their records, their compression.

`header` reads and patches the 61 bytes that a broker needs; it never looks at records. `records`
takes batches apart record by record and builds them, in plain Python. `columns`, which needs numpy
and pyarrow and is imported by nothing here, does the same with whole columns.
"""
