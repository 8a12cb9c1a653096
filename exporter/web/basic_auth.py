"""Basic authentication: compares a client's password with the bcrypt hash of its user, outside the event loop.

bcrypt is slow on purpose. So a password that was right is remembered, as a digest under a key that only this process
has, and a scraper waits for bcrypt once. Others wait in a short queue for one thread, and never delay a scrape.
"""

import asyncio
import base64
import binascii
import enum
import hashlib
import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

MAX_WAITING = 16
"""Passwords that may wait to be compared; a client above this is sent away until later."""
MAX_REMEMBERED = 128
MAX_PASSWORD_BYTES = 72
"""What bcrypt reads of a password; a longer one is never right."""
_NOBODY = b"abcdefghijklmnopqrstuuRhbNgSZUhMJW2xD8GVAFOLfyFfgIfRy"
"""Salt and hash of no password, without version and cost."""


class Login(enum.Enum):
    """The result of comparing credentials."""

    RIGHT = enum.auto()
    WRONG = enum.auto()
    LATER = enum.auto()
    """Too many others wait to be compared."""


class Logins:
    """Compares credentials; remembers those that were right. For use by one event loop."""

    def __init__(self) -> None:
        self._key = os.urandom(32)
        self._right: dict[bytes, None] = {}
        """Digests of user, hash and password, the newest last."""
        self._waiting = 0
        self._executor: ThreadPoolExecutor | None = None

    async def check(self, users: Mapping[str, bytes], header: str) -> Login:
        """Compare the credentials in an Authorization header with the users' hashes."""
        credentials = _credentials(header)
        if credentials is None:
            return Login.WRONG
        user, password = credentials
        expected = users.get(user) or _hash_of_nobody(users)
        digest = self._digest(user, expected, password)
        if digest in self._right:
            return Login.RIGHT
        if self._waiting >= MAX_WAITING:
            return Login.LATER
        if not await self._compare(password, expected):
            return Login.WRONG
        if user not in users:
            return Login.WRONG
        self._remember(digest)
        return Login.RIGHT

    async def _compare(self, password: bytes, expected: bytes) -> bool:
        self._executor = self._executor or ThreadPoolExecutor(1, "bcrypt")
        self._waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._executor, _matches, password, expected)
        finally:
            self._waiting -= 1

    def _remember(self, digest: bytes) -> None:
        self._right[digest] = None
        if len(self._right) > MAX_REMEMBERED:
            del self._right[next(iter(self._right))]

    def _digest(self, user: str, expected: bytes, password: bytes) -> bytes:
        """The hash is part of it, so that a changed password ends what was remembered of the former one."""
        parts = (user.encode(), expected, password)
        framed = b"".join(len(part).to_bytes(4, "big") + part for part in parts)
        return hashlib.blake2b(framed, key=self._key).digest()


def _hash_of_nobody(users: Mapping[str, bytes]) -> bytes:
    """A hash for an unknown user, as dear as that of a known one: the time must not tell whether a user exists."""
    return next(iter(users.values()))[: len("$2b$10$")] + _NOBODY


def _credentials(header: str) -> tuple[str, bytes] | None:
    """User and password of `Basic` and base64; None where the header is anything else."""
    scheme, _, encoded = header.partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        user, colon, password = base64.b64decode(encoded.strip(), validate=True).partition(b":")
        return (user.decode(), password) if colon else None
    except (binascii.Error, UnicodeDecodeError):
        return None


def _matches(password: bytes, expected: bytes) -> bool:
    import bcrypt  # noqa: PLC0415 - only a node with passwords loads it

    if len(password) > MAX_PASSWORD_BYTES:
        return False
    try:
        return bcrypt.checkpw(password, expected)
    except ValueError:  # such as a password with a NUL byte
        return False
