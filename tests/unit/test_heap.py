"""Where threads allocate, read from the process's memory map."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import ctypes, threading
from pathlib import Path
from colearn.runs.comparison.heap import one_heap

libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
if {one}:
    one_heap()
places = []

def allocate():
    # less than what is mapped by itself, more than a thread keeps for itself
    places.append(libc.malloc(ctypes.c_size_t(100_000)))

thread = threading.Thread(target=allocate)
thread.start()
thread.join()
maps = Path("/proc/self/maps").read_text().splitlines()
bounds = [line.split()[0].split("-") for line in maps if line.endswith("[heap]")]
print(any(int(low, 16) <= places[0] < int(high, 16) for low, high in bounds))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("one", [True, False])
def test_a_thread_allocates_in_the_main_heap_if_there_is_one_for_all(one: bool) -> None:
    program = PROGRAM.format(one=one)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stdout.strip()) == (0, str(one)), done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="one heap is glibc's")
def test_a_command_asks_for_one_heap_before_any_library_can_start_a_thread() -> None:
    program = (
        "import sys, colearn.entry.cli\n"
        "cli = colearn.entry.cli\n"
        "cli.one_heap = lambda: print('torch' in sys.modules, 'numpy' in sys.modules)\n"
        "sys.argv = ['colearn', '--version']\n"
        "colearn.entry.cli.main()\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.splitlines()[0] == "False False", done.stderr
