"""The protocol on the pipes: frames that are complete, cut, too long or without an end."""

import os
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.node.reader.protocol import (
    FRAME_LIMIT,
    FrameBuffer,
    ProtocolError,
    ReplyPipe,
    frame,
    read_frame,
    write_frame,
)


@given(bodies=st.lists(st.binary(max_size=300), max_size=8), cut=st.integers(1, 50))
def test_frames_are_read_as_they_were_written_however_the_stream_is_cut(bodies, cut):
    stream = b"".join(map(frame, bodies))
    buffer, out = FrameBuffer(), []
    for begin in range(0, len(stream), cut):
        buffer.feed(stream[begin : begin + cut])
        while (body := buffer.next()) is not None:
            out.append(body)
    assert out == bodies


def test_a_length_over_the_limit_is_an_error_before_its_bytes_arrive():
    buffer = FrameBuffer()
    buffer.feed((FRAME_LIMIT + 1).to_bytes(4, "big"))
    with pytest.raises(ProtocolError, match="over the limit"):
        buffer.next()


def test_a_body_over_the_limit_is_not_sent():
    with pytest.raises(ProtocolError):
        frame(bytes(FRAME_LIMIT + 1))


def test_a_frame_comes_through_a_pipe_and_the_end_of_the_pipe_is_none():
    out, into = os.pipe()
    write_frame(into, b"abc")
    os.write(into, b"\0\0")
    os.close(into)
    assert read_frame(out) == b"abc"
    assert read_frame(out) is None
    os.close(out)


def test_a_blocking_read_of_a_length_over_the_limit_is_an_error():
    out, into = os.pipe()
    os.write(into, b"\xff\xff\xff\xff")
    with pytest.raises(ProtocolError):
        read_frame(out)
    os.close(into)
    os.close(out)


def test_the_last_frame_comes_through_and_never_waits_for_a_full_pipe():
    out, into = os.pipe()
    pipe = ReplyPipe(into)
    pipe.write(b"reply")
    pipe.write_last(b"last")
    assert (read_frame(out), read_frame(out)) == (b"reply", b"last")
    os.write(into, bytes(1 << 16))
    ReplyPipe(into).write_last(b"too late")
    os.close(into)
    os.close(out)


def test_the_last_frame_is_not_written_into_a_reply_that_is_being_written():
    out, into = os.pipe()
    pipe = ReplyPipe(into)
    body = bytes(1 << 20)
    writing = threading.Thread(target=pipe.write, args=(body,))
    writing.start()
    os.read(out, 4)  # the reply has begun, and is too large for the pipe
    pipe.write_last(b"last")
    received = bytearray()
    while len(received) < len(body):
        received += os.read(out, 1 << 16)
    writing.join()
    os.close(into)
    assert (bytes(received), os.read(out, 1)) == (body, b"")
    os.close(out)
