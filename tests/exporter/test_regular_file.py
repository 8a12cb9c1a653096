"""Reading a configuration file: only a regular one, bounded, and never blocking."""

import os
import socket
import tempfile
from pathlib import Path

import pytest

from exporter.regular_file import UnreadableFileError, read

LIMIT = 100


def test_a_file_is_read_also_through_links_as_a_configmap_has_them(tmp_path):
    (tmp_path / "..2026").mkdir()
    (tmp_path / "..2026" / "counters.csv").write_bytes(b"x" * LIMIT)
    (tmp_path / "..data").symlink_to("..2026")
    (tmp_path / "counters.csv").symlink_to("..data/counters.csv")
    assert read(tmp_path / "counters.csv", LIMIT) == b"x" * LIMIT


def directory(path):
    path.mkdir()


def dangling_link(path):
    path.symlink_to("nothing")


def link_loop(path):
    path.symlink_to(path.name)


def below_a_file(path):
    path.parent.rmdir()
    path.parent.write_text("")


def too_large(path):
    path.write_bytes(b"x" * (LIMIT + 1))


def unreadable(path):
    path.write_text("x")
    path.chmod(0)
    if os.access(path, os.R_OK):
        pytest.skip("root reads every file")


def device(path):
    path.symlink_to("/dev/zero")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda _: None, "No such file or directory"),
        (directory, "it is a directory, not a regular file"),
        (dangling_link, "No such file or directory"),
        (link_loop, "Too many levels of symbolic links"),
        (below_a_file, "Not a directory"),
        (too_large, "it has more than 100 bytes"),
        (unreadable, "Permission denied"),
        (os.mkfifo, "it is a FIFO, not a regular file"),
        (device, "it is a character device, not a regular file"),
    ],
)
def test_what_cannot_be_read_is_an_error_with_one_message(tmp_path, make, message):
    path = tmp_path / "folder" / "counters.csv"
    path.parent.mkdir()
    make(path)
    with pytest.raises(UnreadableFileError) as caught:
        read(path, LIMIT)
    assert str(caught.value) == message


def test_a_socket_is_refused():
    # The path of a socket has at most 107 bytes (unix(7)); pytest's own folders can be longer.
    with tempfile.TemporaryDirectory(prefix="socket-") as folder, socket.socket(socket.AF_UNIX) as listening:
        path = Path(folder) / "counters.csv"
        listening.bind(str(path))
        with pytest.raises(UnreadableFileError, match=r"^it is a socket, not a regular file$"):
            read(path, LIMIT)
