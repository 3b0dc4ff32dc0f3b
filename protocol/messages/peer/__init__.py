"""What brokers say to each other. None of it is advertised to clients, nor answered to them."""
