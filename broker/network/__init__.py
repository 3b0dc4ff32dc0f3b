"""Client sockets: one task, connections, requests in order, and who a client is."""

from tidemark.broker.system import check_system

# Whoever wants a broker comes by here, the simulator and a test that asks for one, too: better in a
# sentence than at the first name that Python does not have here.
check_system()
