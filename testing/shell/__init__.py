"""Real brokers and clients under seeded faults, in virtual time: the layer of the shell.

The simulator (`testing.simulator`) plays the core, the storage and the state machines without their
shell. Here it is the other way round: listeners, codec, reactor, handlers, peers' connections and
the client are those of production, on real sockets, and what surrounds them is drawn from a seed:
trio's schedule, how bytes come through the cables, how long disks and threads take, what a disk
keeps without power, who is killed or cut off and when. Time is virtual, so that a minute of
timeouts takes a second.
"""
