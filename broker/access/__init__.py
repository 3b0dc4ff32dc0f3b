"""Who may do what: each request of a client passes a gate, where there is an authorizer."""
