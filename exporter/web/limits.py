"""How long a client of the HTTP server may take, and how much it may send."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """How long a client may take, and how much it may send. Times in seconds, sizes in bytes."""

    request_seconds: float = 10.0
    """From the connection, or the first byte of a later request, to the end of the headers; TLS handshake included.

    After the response, the rest of the body gets this long once more.
    """
    response_seconds: float = 30.0
    """From the end of the headers until the response is written; then as long again until the kernel has taken it."""
    idle_seconds: float = 120.0
    """Between two requests on one connection; longer than usual scrape intervals."""
    connections: int = 128
    header_bytes: int = 16 * 1024
    request_bytes: int = 64 * 1024
    """Of one request with its body, which the application ignores."""
    accepts: int = 16
    """Connections accepted before the event loop reads from those that are open already.

    It is far below `connections`: in a flood, a request that arrived with its connection is read before new
    connections could close it.
    """
    queue: int = 512
    """Length of the kernel's queue of connections that are not accepted yet."""
