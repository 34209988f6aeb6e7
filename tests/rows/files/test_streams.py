"""Files that pyarrow reads ahead, in a thread of its own."""

import bz2
import gzip
import lzma
import subprocess
import sys

import pytest

pyarrow = pytest.importorskip("pyarrow")

from gramian.rows.files import streams  # noqa: E402

TEXT = b"a,b\n" + b"1,2\n" * 1000

# A file whose third block takes long to come, and a process that needs the first one only.
LEAVES_EARLY = """
import io, time
import pyarrow.csv
from gramian.rows.files import streams

class Slow(io.BytesIO):
    blocks = 0

    def read(self, size=-1):
        self.blocks += 1
        time.sleep(0.3 * (self.blocks > 2))
        return super().read(size)

options = pyarrow.csv.ReadOptions(block_size=2**12)
with streams.lent(Slow(b"a,b\\n" + b"1,2\\n" * 100_000)) as file:
    with pyarrow.csv.open_csv(file, read_options=options) as reader:
        assert reader.read_next_batch().num_rows
print("done")
"""


@pytest.mark.interpreter
def test_a_process_that_leaves_early():
    """A thread that still reads a file of Python's would abort it."""
    done = subprocess.run(
        [sys.executable, "-c", LEAVES_EARLY], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


@pytest.mark.parametrize(
    ("pack", "is_native"),
    [(bytes, True), (gzip.compress, True), (bz2.compress, True), (lzma.compress, False)],
)
def test_what_pyarrow_reads_itself(tmp_path, pack, is_native):
    path = tmp_path / "rows.csv"
    path.write_bytes(pack(TEXT))
    with streams.readable_by_arrow(path) as file:
        assert isinstance(file, pyarrow.NativeFile) == is_native
        assert file.read() == TEXT


def test_a_file_that_is_taken_back_is_empty(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_bytes(TEXT)
    with path.open("rb") as file:
        with streams.lent(file) as borrowed:
            assert borrowed.read(3) == b"a,b"
        assert borrowed.read(3) == b""
        assert file.read(3) == b"\n1,"
