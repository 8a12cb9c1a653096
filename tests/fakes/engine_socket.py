"""The unix socket at which a host engine of the fake libdcgm listens. Whether it answers is in the scenario table."""

import socket
from contextlib import suppress
from pathlib import Path


class EngineSocket:
    """A listening socket at `path` while the engine can be reached. Nothing is ever sent through it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.address = f"unix://{path}"
        """The address of the engine, as the option `-r` takes it."""
        self._socket: socket.socket | None = None

    def follow(self, *, listens: bool) -> None:
        """Begin or end to listen, and close what has connected."""
        if not listens:
            self._close()
        elif self._socket is None:
            self._path.unlink(missing_ok=True)
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self._socket.setblocking(False)
            self._socket.bind(str(self._path))
            self._socket.listen()
        else:
            self._close_accepted(self._socket)

    def _close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None
            self._path.unlink(missing_ok=True)

    @staticmethod
    def _close_accepted(listening: socket.socket) -> None:
        with suppress(BlockingIOError):
            while True:
                listening.accept()[0].close()
