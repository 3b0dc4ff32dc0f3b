"""A partition's log on disk, and what else of a broker has to survive it.

Synchronous, and with one seam to the operating system (`files`).
"""
