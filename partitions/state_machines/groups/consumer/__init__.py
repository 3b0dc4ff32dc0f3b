"""Groups of the consumer protocol (KIP-848): members only send heartbeats, and the coordinator
assigns.

`heartbeat` is what a member says, `group` what is known, `assignors` who is to read what,
`reconciliation` the way there (nobody is given what another one has not given up), `recording` how
it gets into the log and `restoring` how it comes back. Nothing here waits, or knows the time.
"""
