import io
import json
import logging
import re
import subprocess
import sys
import warnings

import pytest

from exporter.log import Changes, setup


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


def test_json_lines_carry_the_same_keys(stream):
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


def test_levels_hold_for_us_and_libraries_speak_from_warnings_on(stream):
    setup(stream)
    for name in ("exporter.x", "uvicorn.other"):
        for level in (logging.DEBUG, logging.INFO, logging.WARNING):
            logging.getLogger(name).log(level, "%s-%s", name, logging.getLevelName(level))
    said = re.findall(r"msg=(\S+)", stream.getvalue())
    assert said == ["exporter.x-INFO", "exporter.x-WARNING", "uvicorn.other-WARNING"]


def test_debug_lets_everyone_speak(stream):
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
    changes = Changes(logging.getLogger("exporter.state"))
    assert not changes.clear("kubelet", "kubelet answers again")
    assert changes.report("kubelet", "kubelet socket missing")
    assert not changes.report("kubelet", "kubelet socket missing")
    assert changes.report("dcgm", "engine gone", logging.ERROR)
    assert changes.report("kubelet", "kubelet refuses")
    assert changes.clear("kubelet", "kubelet answers again")
    assert not changes.clear("kubelet", "kubelet answers again")
    assert changes.report("kubelet", "kubelet refuses")
    said = re.findall(r'level=(\w+) msg="([^"]+)"', stream.getvalue())
    assert said == [
        ("WARN", "kubelet socket missing"),
        ("ERROR", "engine gone"),
        ("WARN", "kubelet refuses"),
        ("INFO", "kubelet answers again"),
        ("WARN", "kubelet refuses"),
    ]


def test_remembered_states_are_bounded():
    changes = Changes(logging.getLogger("quiet"))
    changes.report("first", "x")
    for number in range(999):
        changes.report(str(number), "x")
    assert not changes.report("first", "x")
    changes.report("one more", "x")
    assert not changes.report("first", "x")
    assert changes.report("0", "x")
    assert len(changes._said) == 1000
