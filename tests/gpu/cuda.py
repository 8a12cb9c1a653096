"""The few functions of the CUDA driver's library, libcuda, that a known load needs, through ctypes (cuda.h)."""

import ctypes as c

BLOCKING_SYNC = 4
"""CU_CTX_SCHED_BLOCKING_SYNC: a thread that waits for the GPU sleeps."""
MULTIPROCESSORS, MAJOR, MINOR = 16, 75, 76
"""CU_DEVICE_ATTRIBUTE_…"""
THREADS = 256
"""Of one block: eight warps, two for each of the four tensor cores of a multiprocessor."""

ARGUMENTS = {
    "cuInit": (c.c_uint,),
    "cuDeviceGet": (c.c_void_p, c.c_int),
    "cuDeviceGetUuid": (c.c_void_p, c.c_int),
    "cuDeviceGetAttribute": (c.c_void_p, c.c_int, c.c_int),
    "cuDeviceTotalMem_v2": (c.c_void_p, c.c_int),
    "cuDevicePrimaryCtxSetFlags_v2": (c.c_int, c.c_uint),
    "cuDevicePrimaryCtxRetain": (c.c_void_p, c.c_int),
    "cuDevicePrimaryCtxRelease_v2": (c.c_int,),
    "cuCtxSetCurrent": (c.c_void_p,),
    "cuCtxSynchronize": (),
    "cuModuleLoadData": (c.c_void_p, c.c_char_p),
    "cuModuleGetFunction": (c.c_void_p, c.c_void_p, c.c_char_p),
    "cuMemAlloc_v2": (c.c_void_p, c.c_size_t),
    "cuMemsetD8_v2": (c.c_uint64, c.c_ubyte, c.c_size_t),
    "cuLaunchKernel": (c.c_void_p, *(c.c_uint,) * 7, c.c_void_p, c.c_void_p, c.c_void_p),
    "cuGetErrorName": (c.c_int, c.c_void_p),
}


class CudaError(Exception):
    """A call of libcuda failed, or there is no libcuda; the message names the call and CUDA's word for the error."""


class Cuda:
    """The first GPU that CUDA shows, with a context of this process."""

    def __init__(self, path: str = "libcuda.so.1") -> None:
        try:
            self._library = c.CDLL(path)
        except OSError as error:
            raise CudaError(f"{path} cannot be loaded: {error}") from None
        for name, arguments in ARGUMENTS.items():
            getattr(self._library, name).argtypes = arguments
        self._call("cuInit", 0)
        device, context, uuid = c.c_int(), c.c_void_p(), (c.c_ubyte * 16)()
        self._call("cuDeviceGet", c.byref(device), 0)
        self._device = device.value
        self._call("cuDeviceGetUuid", c.byref(uuid), self._device)
        self.uuid = uuid_text(bytes(uuid))
        self._call("cuDevicePrimaryCtxSetFlags_v2", self._device, BLOCKING_SYNC)
        self._call("cuDevicePrimaryCtxRetain", c.byref(context), self._device)
        self._call("cuCtxSetCurrent", context)
        self._blocks = self._attribute(MULTIPROCESSORS)
        self.capability = self._attribute(MAJOR), self._attribute(MINOR)
        self._result = self.allocate(4)

    def close(self) -> None:
        """Free everything that this process has on the GPU."""
        self._call("cuDevicePrimaryCtxRelease_v2", self._device)

    def total_bytes(self) -> int:
        """The size of the GPU's memory."""
        total = c.c_size_t()
        self._call("cuDeviceTotalMem_v2", c.byref(total), self._device)
        return total.value

    def allocate(self, size: int) -> int:
        """Allocate memory and write to all of it. Returns its address."""
        address = c.c_uint64()
        self._call("cuMemAlloc_v2", c.byref(address), size)
        self._call("cuMemsetD8_v2", address, 0, size)
        return address.value

    def load(self, program: str) -> c.c_void_p:
        """Compile a program of kernels.py for this GPU."""
        module, function = c.c_void_p(), c.c_void_p()
        self._call("cuModuleLoadData", c.byref(module), program.encode())
        self._call("cuModuleGetFunction", c.byref(function), module, b"load")
        return function

    def run(self, function: c.c_void_p, seconds: float) -> None:
        """Run a program on every multiprocessor for so long, and wait for its end."""
        values = c.c_uint64(round(seconds * 1e9)), c.c_uint64(self._result)
        pointers = (c.c_void_p * 2)(*(c.addressof(value) for value in values))
        shape = (self._blocks, 1, 1, THREADS, 1, 1)
        self._call("cuLaunchKernel", function, *shape, 0, None, c.byref(pointers), None)
        self._call("cuCtxSynchronize")

    def _attribute(self, number: int) -> int:
        value = c.c_int()
        self._call("cuDeviceGetAttribute", c.byref(value), number, self._device)
        return value.value

    def _call(self, name: str, *arguments: object) -> None:
        status = getattr(self._library, name)(*arguments)
        if status != 0:
            word = c.c_char_p()
            self._library.cuGetErrorName(status, c.byref(word))
            raise CudaError(f"{name}: {(word.value or b'unknown error').decode()} ({status})")


def uuid_text(raw: bytes) -> str:
    """The UUID of a GPU as NVML and DCGM write it."""
    digits = raw.hex()
    return f"GPU-{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
