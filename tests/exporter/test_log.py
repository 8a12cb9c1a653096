"""Log lines are logfmt or JSON that no message can break, and a state or message that repeats is logged once."""

import io
import json
import logging
import re
import subprocess
import sys
import warnings

import pytest

from exporter.log import MAX_STATES, MAX_STATES_OF_ONE, OnceLog, StateLog, setup


@pytest.fixture
def stream():
    root, ours = logging.getLogger(), logging.getLogger("exporter")
    before = root.handlers[:], root.level, ours.level
    shown = warnings.showwarning
    yield io.StringIO()
    logging.captureWarnings(False)
    warnings.showwarning = shown
    root.handlers[:] = before[0]
    root.setLevel(before[1])
    ours.setLevel(before[2])


TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"


def test_text_lines_are_logfmt_with_the_keys_of_dcgm_exporter(stream):
    setup(stream)
    logging.getLogger("exporter.node").warning("no GPU found on %s", "n1")
    assert re.fullmatch(rf'time={TIME} level=WARN msg="no GPU found on n1" logger=exporter\.node\n', stream.getvalue())


def test_json_lines_have_the_same_keys(stream):
    setup(stream, "json")
    logging.getLogger("exporter.node").error("lost")
    line = json.loads(stream.getvalue())
    assert list(line) == ["time", "level", "msg", "logger"]
    assert (line["level"], line["msg"], line["logger"]) == ("ERROR", "lost", "exporter.node")
    assert re.fullmatch(TIME, line["time"])


@pytest.mark.parametrize("format", ["text", "json"])
@pytest.mark.parametrize(
    "message", ['a "b" c', "a\nlevel=ERROR msg=forged", "a\\b", "", "k=v", "\x1b[31m", "\u2028", "ü"]
)
def test_no_message_can_break_out_of_its_line(stream, format, message):
    setup(stream, format)
    logging.getLogger("exporter").info("%s", message)
    line = stream.getvalue()
    assert line.count("\n") == 1
    assert len(line.splitlines()) == 1
    assert "\x1b" not in line
    if format == "json":
        assert json.loads(line)["msg"] == message
    else:
        quoted = re.search(r' msg=(".*"|\S+) logger=', line)[1]
        assert (json.loads(quoted) if quoted.startswith('"') else quoted) == message


@pytest.mark.parametrize("format", ["text", "json"])
def test_a_traceback_stays_on_the_line_of_its_message(stream, format):
    setup(stream, format)
    try:
        raise ValueError("odd")
    except ValueError:
        logging.getLogger("exporter").exception("failed")
    assert stream.getvalue().count("\n") == 1
    assert "ValueError: odd" in stream.getvalue()


def test_our_records_are_logged_from_the_level_on_and_those_of_libraries_from_warnings_on(stream):
    setup(stream)
    for name in ("exporter.x", "uvicorn.other"):
        for level in (logging.DEBUG, logging.INFO, logging.WARNING):
            logging.getLogger(name).log(level, "%s-%s", name, logging.getLevelName(level))
    logged = re.findall(r"msg=(\S+)", stream.getvalue())
    assert logged == ["exporter.x-INFO", "exporter.x-WARNING", "uvicorn.other-WARNING"]


def test_at_level_debug_records_of_libraries_are_logged_too(stream):
    setup(stream, level="debug")
    logging.getLogger("exporter.x").debug("ours")
    logging.getLogger("other").debug("theirs")
    assert re.findall(r"msg=(\S+)", stream.getvalue()) == ["ours", "theirs"]


def test_python_warnings_go_to_the_log(stream):
    setup(stream)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        logging.captureWarnings(True)
        warnings.warn("old spelling", stacklevel=1)
    assert "level=WARN" in stream.getvalue()
    assert "old spelling" in stream.getvalue()


def test_setting_up_again_replaces_what_was_there(stream):
    setup(io.StringIO())
    setup(stream)
    logging.getLogger("exporter").info("once")
    assert stream.getvalue().count("once") == 1


def test_a_process_logs_to_standard_error_alone():
    program = (
        "import sys, logging; from exporter.log import setup\n"
        "setup(sys.stderr); logging.getLogger('exporter').info('hi')"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == ""
    assert done.stderr.endswith("msg=hi logger=exporter\n")


def test_a_state_is_logged_when_it_begins_changes_and_ends(stream):
    setup(stream)
    states = StateLog(logging.getLogger("exporter.state"))
    assert not states.clear("kubelet", "kubelet answers again")
    assert states.report("kubelet", "kubelet socket missing")
    assert not states.report("kubelet", "kubelet socket missing")
    assert states.report("dcgm", "engine gone", level=logging.ERROR)
    assert states.report("kubelet", "kubelet denies access")
    assert states.keys() == {"kubelet", "dcgm"}
    assert states.clear("kubelet", "kubelet answers again")
    assert not states.clear("kubelet", "kubelet answers again")
    assert states.report("kubelet", "kubelet denies access")
    logged = re.findall(r'level=(\w+) msg="([^"]+)"', stream.getvalue())
    assert logged == [
        ("WARN", "kubelet socket missing"),
        ("ERROR", "engine gone"),
        ("WARN", "kubelet denies access"),
        ("INFO", "kubelet answers again"),
        ("WARN", "kubelet denies access"),
    ]


def test_a_message_that_varies_within_one_state_is_logged_once(stream):
    setup(stream)
    states = StateLog(logging.getLogger("exporter.state"))
    assert states.report("dcgm", "engine gone; next attempt in 4 s", state="connection_lost")
    assert not states.report("dcgm", "engine gone; next attempt in 2 s", state="connection_lost")
    assert stream.getvalue().count("engine gone") == 1


def test_a_subject_that_alternates_between_two_states_is_logged_once_in_each(stream):
    setup(stream)
    states = StateLog(logging.getLogger("exporter.state"))
    for state in ("slow", "connection_lost") * 3:
        states.report("dcgm", f"engine is {state}", state=state)
    states.clear("dcgm", "recovered")
    states.report("dcgm", "engine is slow", state="slow")
    logged = re.findall(r'msg="?([^"]+?)"? logger', stream.getvalue())
    assert logged == ["engine is slow", "engine is connection_lost", "recovered", "engine is slow"]


def test_remembered_states_are_bounded():
    states = StateLog(logging.getLogger("quiet"))
    states.report("first", "x")
    for number in range(MAX_STATES - 1):
        states.report(str(number), "x")
    assert not states.report("first", "x")
    states.report("one more", "x")
    assert not states.report("first", "x")
    assert states.report("0", "x")
    assert len(states.keys()) == MAX_STATES


def test_remembered_states_of_one_subject_are_bounded():
    states = StateLog(logging.getLogger("quiet"))
    for number in range(MAX_STATES_OF_ONE + 1):
        assert states.report("tls", f"message {number}")
    assert not states.report("tls", f"message {MAX_STATES_OF_ONE}")
    assert states.report("tls", "message 0")


def test_a_message_is_logged_once_and_not_more_than_so_many_are(stream):
    setup(stream)
    once = OnceLog(logging.getLogger("exporter.once"))
    for number in (*range(MAX_STATES + 5), 0, 1):
        once.warning(f"object {number} cannot be read")
    assert stream.getvalue().count("cannot be read") == MAX_STATES
    assert stream.getvalue().count('"object 0 cannot') == 1
