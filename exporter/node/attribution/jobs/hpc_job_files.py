"""Reads the files that map GPUs to the jobs of an HPC scheduler such as Slurm.

A file is named after the index of a GPU, or index and GPU instance id with a dot between (`0`, `3.7`), and has one job
per line, as for dcgm-exporter. A prolog writes it and an epilog removes it. A file that cannot be read costs itself.
"""

import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from exporter import regular_file
from exporter.background import Starter, in_background
from exporter.reason import Reason
from exporter.regular_file import UnreadableFileError

NAME = "hpc_jobs"
"""The label `source` of the problems."""
PATIENCE_SECONDS = 1.0
"""How long a collection waits: the files are in memory, except where somebody has put them on a network."""
MAX_FILE_BYTES = 16 << 10
MAX_JOB_CHARACTERS = 256
_FILE = re.compile(r"[0-9]{1,4}(\.[0-9]{1,4})?")


class HpcJobReason(Reason):
    """Label `reason` of `gpugauge_source_problem` with the source hpc_jobs."""

    FOLDER_UNREADABLE = (
        "folder_unreadable",
        "The folder of --hpc-job-mapping-dir cannot be read, so no series has a job.",
        "Create the folder and mount it into the container; the prolog of the scheduler writes into it.",
    )
    FILE_UNREADABLE = (
        "file_unreadable",
        "A file of a GPU cannot be read, or has a job that is not UTF-8 or too long; it or that job is left out.",
        "See the log for the file; it must be readable for the exporter, with one job per line.",
    )
    FOLDER_SLOW = (
        "folder_slow",
        "Reading the folder of --hpc-job-mapping-dir takes more than a second; series have no job meanwhile.",
        "Put the folder on a local file system such as /run.",
    )


@dataclass(frozen=True, slots=True)
class JobFiles:
    """What the folder has."""

    jobs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The jobs by the name of the file."""
    problems: tuple[tuple[str, str], ...] = ()
    """(reason, message)."""


class JobFilesReader:
    """Reads the folder in a thread of its own, so that a file system that hangs delays a collection only a little."""

    def __init__(
        self,
        folder: Path,
        patience: float = PATIENCE_SECONDS,
        start: Starter = in_background("hpc-jobs"),  # noqa: B008 - it has no state
    ) -> None:
        self._folder, self._patience, self._start = folder, patience, start
        self._done = threading.Event()
        self._done.set()
        self._found = JobFiles()

    def read(self) -> JobFiles:
        """Return what the folder has now; no jobs and a problem where that takes too long."""
        if self._done.is_set():
            self._done.clear()
            self._start(self._read)
        if self._done.wait(self._patience):
            return self._found
        message = f"{self._folder}: reading it takes more than {self._patience:g} s"
        return JobFiles(problems=((HpcJobReason.FOLDER_SLOW, message),))

    def _read(self) -> None:
        try:
            self._found = read_folder(self._folder)
        finally:
            self._done.set()


def read_folder(folder: Path) -> JobFiles:
    """Read every file of a GPU. Never raises for what is in the folder."""
    try:
        files = sorted(path for path in folder.iterdir() if _FILE.fullmatch(path.name))
    except OSError as error:
        return JobFiles(problems=((HpcJobReason.FOLDER_UNREADABLE, f"{folder}: {error.strerror}"),))
    jobs, problems = {}, []
    for file in files:
        try:
            content = regular_file.read(file, MAX_FILE_BYTES)
        except UnreadableFileError as error:
            problems.append(f"{file}: {error}")
            continue
        jobs[file.name], bad = _jobs(content)
        problems += [f"{file}, line {line}: {problem}" for line, problem in bad]
    return JobFiles(jobs, tuple((HpcJobReason.FILE_UNREADABLE, problem) for problem in problems))


def _jobs(content: bytes) -> tuple[tuple[str, ...], list[tuple[int, str]]]:
    """The jobs of a file, each once, and the lines that are none."""
    jobs: dict[str, None] = {}
    bad = []
    for number, line in enumerate(content.splitlines(), 1):
        try:
            job = line.decode().strip()
        except UnicodeDecodeError:
            bad.append((number, "not UTF-8"))
            continue
        if len(job) > MAX_JOB_CHARACTERS:
            bad.append((number, f"more than {MAX_JOB_CHARACTERS} characters"))
        elif job:
            jobs[job] = None
    return tuple(jobs), bad
