"""Each broker is in a rack of its own, and so are the consumers that read from the nearest copy."""


def rack_of(node: int) -> str:
    return f"rack-{node}"
