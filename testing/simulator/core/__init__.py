"""The fast layer: the consensus core alone, on logs in memory.

No heartbeats, journals, segments or clients: who is alive follows from the links as they are, and
a log is a list. So nothing happens while nothing is due, and a simulated hour costs a hundredth of
what it costs with whole brokers. The core, its election queue, its retries and the leaders' moves
are the real ones, and so are the judges, the faults and the drawing of both.
"""
