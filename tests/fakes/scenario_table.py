"""Writes a scenario, one moment after the other, into the table file of table.h that the fake libraries read.

    python -m tests.fakes.scenario_table SCENARIO TABLE [INTERVAL [SOCKET [MOMENT]]]

writes every INTERVAL seconds until it is stopped. At SOCKET, a unix socket, the table's host engine listens; `-` means
nowhere. With MOMENT (seconds of scenario time) it writes that moment each time, with new timestamps: the values stand
still, so that two programs that read them can be compared. In tests `ScenarioTable.tick(t)` writes one moment.
"""

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from exporter.node.simulation.scenario import Scenario, load
from exporter.node.simulation.state import ScenarioState
from tests.fakes.engine_socket import EngineSocket
from tests.fakes.table_bytes import table

VARIABLE = "GPUGAUGE_FAKE_TABLE"
"""The environment variable with the path of the table file."""


class ScenarioTable:
    """Writes moments of a scenario to the file `path`. A scenario without an epoch begins when this is made."""

    def __init__(
        self,
        scenario: Scenario,
        path: Path,
        clock: Callable[[], float] = time.time,
        listening: EngineSocket | None = None,
        *,
        moment: float | None = None,
    ) -> None:
        """`clock` gives Unix seconds. `listening` is open while the host engine can be reached.

        With `moment`, every tick writes that scenario time as if it were now.
        """
        self.scenario = scenario
        self._moment = moment
        self.path = path
        self._clock = clock
        self._listening = listening
        self._begin = scenario.begins(clock())
        self.ticks = 0

    def tick(self, t: float | None = None) -> ScenarioState:
        """Replace the table by that of scenario time `t` (None is now), and return its state."""
        now = self._clock() if t is None else self._begin + t
        state = self.scenario.at(now - self._begin if self._moment is None else self._moment)
        self.ticks += 1
        draft = self.path.with_name(f"{self.path.name}.{os.getpid()}.{threading.get_ident()}.new")
        draft.write_bytes(table(state, now, self.ticks))
        draft.replace(self.path)
        if self._listening is not None:
            self._listening.follow(listens=state.connected)
        return state

    def jump(self, t: float) -> ScenarioState:
        """Continue at scenario time `t` from now on, without a change of the clock, and return the state."""
        self._begin = self._clock() - t
        return self.tick()

    @contextmanager
    def run(self, interval: float = 0.2) -> Iterator["ScenarioTable"]:
        """Tick every `interval` seconds in a thread while the context lasts."""
        self.tick()
        stop = threading.Event()
        thread = threading.Thread(target=self._loop, args=(interval, stop), name="scenario-table")
        thread.start()
        try:
            yield self
        finally:
            stop.set()
            thread.join()
            self.close()

    def close(self) -> None:
        """Close the engine's socket."""
        if self._listening is not None:
            self._listening.follow(listens=False)

    def _loop(self, interval: float, stop: threading.Event) -> None:
        while not stop.wait(interval):
            self.tick()


def main(arguments: list[str]) -> None:
    interval = float(arguments[2]) if len(arguments) > 2 else 0.2
    listening = EngineSocket(Path(arguments[3])) if len(arguments) > 3 and arguments[3] != "-" else None
    moment = float(arguments[4]) if len(arguments) > 4 else None
    scenario_table = ScenarioTable(load(arguments[0]), Path(arguments[1]), listening=listening, moment=moment)
    with scenario_table.run(interval):
        threading.Event().wait()


if __name__ == "__main__":
    main(sys.argv[1:])
