"""What a worker's environment must hold before it starts: the C library reads these once, before any Python runs.

The parent applies them before it spawns, so this module imports nothing but the standard library.
"""

from __future__ import annotations

from typing import Final

GIB: Final = 2**30
MIB: Final = 2**20

# A compiled convolution is kept for each layer and shape, in oneDNN and once more in torch's binding to it. An inbox of
# many different crops fills both with hundreds of megabytes. Measured over 160 photos of 37 shapes: 1533 MiB at the end
# and growing with the defaults, 527 MiB and flat from the twentieth photo with these, in the same time.
PRIMITIVES: Final = 16
BINDINGS: Final = 1


def environment(*, threads: int) -> dict[str, str]:
    """Return the variables for one worker that computes with `threads` threads (at least 1).

    Measured at 512² with one thread: keeping memory alone makes the plain network 1.6 times as fast, because glibc
    otherwise returns each activation of tens of megabytes to the kernel and faults it in again, page by page.
    """
    if threads < 1:
        raise ValueError(f"a worker needs at least one thread, got {threads}")
    return {
        # Serve activations from the heap rather than from fresh mappings …
        "MALLOC_MMAP_THRESHOLD_": str(4 * GIB),
        # … never give the top of the heap back between two pictures …
        "MALLOC_TRIM_THRESHOLD_": str(4 * GIB),
        # … and grow it in steps that hold a whole layer.
        "MALLOC_TOP_PAD_": str(256 * MIB),
        # One arena for the network and one for the thread that decodes ahead. In a shared one, a decoded photo that
        # lives on between two passes of the network cuts its memory into pieces, and the heap grows for hours.
        "MALLOC_ARENA_MAX": "2",
        # Pools are sized when the libraries load: without this every worker starts a thread per core of the machine.
        "OMP_NUM_THREADS": str(threads),
        "MKL_NUM_THREADS": str(threads),
        "OPENBLAS_NUM_THREADS": "1",  # NumPy only moves pixels here.
        # OpenCV remarks on stderr what its newer engine does not have; what goes wrong it raises.
        "OPENCV_LOG_LEVEL": "ERROR",
        # Threads that wait for the next picture must sleep, not spin.
        "OMP_WAIT_POLICY": "PASSIVE",
        "ONEDNN_PRIMITIVE_CACHE_CAPACITY": str(PRIMITIVES),
        "LRU_CACHE_CAPACITY": str(BINDINGS),
    }
