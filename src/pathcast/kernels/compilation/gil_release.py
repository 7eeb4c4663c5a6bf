"""Releasing the GIL: kernels release it while they run, except in a thread that keeps it for a moment.

A kernel that releases the GIL while another thread waits for it hands it over, and gets it back only when that thread
waits or after five milliseconds. For a thread that calls several kernels of some microseconds each, that is most of its
time, and nothing is won. Such a thread keeps the GIL for all of them.

Machine code calls `pathcast_release_gil` and `pathcast_regain_gil` where Numba would call Python's functions
(`kernel_linking.py`). They are written in LLVM's language, since a function that runs without the GIL cannot be Python.

Invariant: a thread regains the GIL after a kernel exactly if it has released it. At most one thread keeps the GIL; if
another one calls `keep_gil` meanwhile, the first one releases it again, which costs time only.
Cost: 3 ns per kernel call; 0.1 µs to keep the GIL or not.
"""

import ctypes
from threading import get_ident

# What Numba calls in a kernel, and what a kernel calls instead.
RELEASING = {"PyEval_SaveThread": "pathcast_release_gil", "PyEval_RestoreThread": "pathcast_regain_gil"}
# The thread that keeps the GIL, or 0.
_keeper = ctypes.c_uint64(0)

RELEASE_CODE = f"""
declare i8* @PyEval_SaveThread()
declare void @PyEval_RestoreThread(i8*)
declare i64 @PyThread_get_thread_ident()

define i8* @pathcast_release_gil() {{
  %keeper = load volatile i64, i64* inttoptr (i64 {ctypes.addressof(_keeper)} to i64*)
  %here = call i64 @PyThread_get_thread_ident()
  %kept = icmp eq i64 %keeper, %here
  br i1 %kept, label %keep, label %release
keep:
  ret i8* null
release:
  %state = call i8* @PyEval_SaveThread()
  ret i8* %state
}}

define void @pathcast_regain_gil(i8* %state) {{
  %kept = icmp eq i8* %state, null
  br i1 %kept, label %done, label %regain
regain:
  call void @PyEval_RestoreThread(i8* %state)
  br label %done
done:
  ret void
}}
"""


def keep_gil() -> None:
    """Let kernels that this thread calls keep the GIL, until `release_gil`."""
    _keeper.value = get_ident()


def release_gil() -> bool:
    """Let kernels that this thread calls release the GIL again; return whether they have kept it until now."""
    kept = bool(_keeper.value == get_ident())
    if kept:
        _keeper.value = 0
    return kept
