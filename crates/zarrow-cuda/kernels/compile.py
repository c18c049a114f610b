"""The PTX of the kernels, made by NVRTC: `make ptx`.

NVRTC 12.0 makes PTX 8.0, which every driver since CUDA 12 compiles for any GPU from `compute_70` on.
This needs no GPU. NVRTC gets each file as a name and a text, so the PTX contains no path of this machine.
"""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path

KERNELS = Path(__file__).parent
PTX = KERNELS.parent / "ptx" / "zarrow.ptx"
ARCHITECTURE = "compute_70"
VERSION = (12, 0)


class CompilationError(Exception):
    """Error of NVRTC, with its log."""


class Compiler:
    """NVRTC from the wheel `nvidia-cuda-nvrtc-cu12`, installed in a folder."""

    def __init__(self, packages: Path) -> None:
        folder = packages / "nvidia" / "cuda_nvrtc" / "lib"
        # NVRTC looks this library up by name, and finds it if it is loaded already.
        ctypes.CDLL(str(folder / "libnvrtc-builtins.so.12.0"), mode=ctypes.RTLD_GLOBAL)
        self.library = ctypes.CDLL(str(folder / "libnvrtc.so.12"))
        self.library.nvrtcGetErrorString.restype = ctypes.c_char_p
        major, minor = ctypes.c_int(), ctypes.c_int()
        self.call("nvrtcVersion", ctypes.byref(major), ctypes.byref(minor))
        if (major.value, minor.value) != VERSION:
            raise CompilationError(
                f"NVRTC {major.value}.{minor.value}: expected 12.0, as in requirements/nvrtc.lock"
            )

    def call(self, name: str, *arguments: object) -> None:
        """Call a function of NVRTC, and raise its error."""
        if result := getattr(self.library, name)(*arguments):
            raise CompilationError(f"{name}: {self.library.nvrtcGetErrorString(result).decode()}")

    def output(self, program: ctypes.c_void_p, name: str) -> bytes:
        """Return an output of the program: `PTX`, `CUBIN` or `ProgramLog`."""
        size = ctypes.c_size_t()
        self.call(f"nvrtcGet{name}Size", program, ctypes.byref(size))
        buffer = ctypes.create_string_buffer(size.value)
        self.call(f"nvrtcGet{name}", program, buffer)
        return buffer.raw

    def compile(self, architecture: str, *options: str) -> tuple[bytes, str]:
        """Return the kernels for an architecture, and the log: PTX for `compute_…`, a cubin for `sm_…`."""
        headers = sorted(KERNELS.glob("*.cuh"))
        texts = (ctypes.c_char_p * len(headers))(*[header.read_bytes() for header in headers])
        names = (ctypes.c_char_p * len(headers))(*[header.name.encode() for header in headers])
        program = ctypes.c_void_p()
        source = (KERNELS / "zarrow.cu").read_bytes()
        self.call(
            "nvrtcCreateProgram", ctypes.byref(program), source, b"zarrow.cu", len(headers), texts, names
        )
        # Multiplications and additions stay separate, each rounded, as on the host.
        flags = [f"--gpu-architecture={architecture}", "--std=c++17", "--fmad=false", *options]
        encoded = (ctypes.c_char_p * len(flags))(*[flag.encode() for flag in flags])
        try:
            result = self.library.nvrtcCompileProgram(program, len(flags), encoded)
            log = self.output(program, "ProgramLog").rstrip(b"\0").decode()
            if result:
                raise CompilationError(log)
            is_ptx = architecture.startswith("compute")
            output = self.output(program, "PTX" if is_ptx else "CUBIN")
            return (output.rstrip(b"\0") if is_ptx else output), log
        finally:
            self.call("nvrtcDestroyProgram", ctypes.byref(program))


def main() -> None:
    """Write the PTX. The argument is the folder of installed packages."""
    ptx, log = Compiler(Path(sys.argv[1])).compile(ARCHITECTURE)
    PTX.parent.mkdir(exist_ok=True)
    PTX.write_bytes(ptx)
    print(log, end="")
    print(f"{PTX.name}: {len(ptx)} bytes, {ptx.count(b'.entry')} kernels")


if __name__ == "__main__":
    main()
