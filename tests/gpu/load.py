"""Puts a known load on the first GPU, in a process of its own.

    python -m tests.gpu.load duty SHARE SECONDS      computes for this share of the time
    python -m tests.gpu.load tensor SHARE SECONDS    likewise, on the tensor cores
    python -m tests.gpu.load memory SHARE            has this share of the memory until its input ends

Writes JSON lines: first the UUID of the GPU when the load begins, last what the load was. `memory` begins when it has
read a line.
"""

import json
import sys
import time
from collections.abc import Callable

from tests.gpu.cuda import Cuda, CudaError
from tests.gpu.kernels import SPIN, TENSOR

PERIOD = 0.05
"""Seconds in which the GPU computes once: many times in one collection, and long beside the start of a program."""
TENSOR_CAPABILITY = (8, 0)
"""The first compute capability that has the matrix product of kernels.TENSOR."""


def duty_cycle(
    run: Callable[[float], None],
    share: float,
    seconds: float,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> float:
    """Call `run` with the seconds to compute, once a period. Returns the share of the time that it computed.

    A period that begins late is as long as the others; what it was late by counts as time without computing.
    """
    began, computed = clock(), 0.0
    while (now := clock()) < began + seconds:
        run(share * PERIOD)
        computed += share * PERIOD
        sleep(max(now + PERIOD - clock(), 0.0))
    return computed / (clock() - began)


def main(arguments: list[str]) -> int:
    kind, share = arguments[0], float(arguments[1])
    try:
        cuda = Cuda()
        if kind == "memory":
            _memory(cuda, share)
        else:
            _compute(cuda, TENSOR if kind == "tensor" else SPIN, share, float(arguments[2]))
        cuda.close()
    except CudaError as error:
        _write(error=str(error))
        return 1
    return 0


def _compute(cuda: Cuda, program: str, share: float, seconds: float) -> None:
    if program is TENSOR and cuda.capability < TENSOR_CAPABILITY:
        raise CudaError(f"compute capability {cuda.capability} has no product of matrices of this size")
    function = cuda.load(program)
    cuda.run(function, 0.001)
    _write(uuid=cuda.uuid)
    _write(share=duty_cycle(lambda busy: cuda.run(function, busy), share, seconds))


def _memory(cuda: Cuda, share: float) -> None:
    _write(uuid=cuda.uuid)
    sys.stdin.readline()
    size = int(cuda.total_bytes() * share)
    cuda.allocate(size)
    _write(bytes=size)
    sys.stdin.read()


def _write(**what: object) -> None:
    print(json.dumps(what), flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
