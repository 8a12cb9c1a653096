"""The HTTP server of both programs: listening sockets, TLS, limits for every client, and the endpoints."""
