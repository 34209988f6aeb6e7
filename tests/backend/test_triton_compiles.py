"""The programs compile for a GPU, with or without one: Triton needs none to make machine code."""

import os
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("triton", reason="triton is not installed")

pytestmark = pytest.mark.interpreter

CODE = """
import sys
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from gramian import *
from gramian.backend import triton_programs

KERNELS = [
    RBF(0.3), Laplacian(0.2), Matern(0.3, nu=1.5), Matern(0.3, nu=2.5), Exponential(0.3),
    Cauchy(0.3), RationalQuadratic(0.3, alpha=1.7), Linear(), Polynomial(degree=3, gamma=0.2),
    ExponentialDot(0.1), Sigmoid(gamma=0.2, coef0=0.1),
]
if sys.argv[1:] == ["few"]:
    KERNELS = [RBF(0.3), Laplacian(0.2), Linear()]  # one of each pairing
TYPES = dict.fromkeys(("X", "Y", "Y_rest", "X_norms", "Y_norms"), "*fp32") | {"factor": "fp32"}
TYPES |= {number: "fp32" for number in ("n0", "n1", "n2", "n3")}
for kernel in KERNELS:
    form = kernel.gpu_form()
    program = triton_programs._program(form.profile)
    for of_sums in ("*fp32", "*fp64"):
        constants = {
            "PAIRING": triton_programs._PAIRINGS[form.pairing], "FALLS": form.scale < 0,
            "THRICE": True, "WHOLE": True, "COLUMNS": 16, "TARGETS": 16, "ROWS": 64,
            "POINTS": 32,
        }
        types = TYPES | dict.fromkeys(("V", "V_rest", "out"), of_sums)
        types |= dict.fromkeys(constants, "constexpr")
        source = ASTSource(
            program,
            signature={name: types.get(name, "i32") for name in program.arg_names},
            constexprs={(program.arg_names.index(key),): constants[key] for key in constants},
        )
        compiled = triton.compile(source, target=GPUTarget("cuda", 90, 32))
        assert "cubin" in compiled.asm
        print("compiled", kernel, of_sums)

from gramian.backend.triton_nearest import _nearest
types = dict.fromkeys(("Z", "C", "C_rest", "offset", "least"), "*fp32") | {"labels": "*i64"}
constants = {"ROWS": 64, "COLUMNS": 32, "CENTRES": 32}
types |= dict.fromkeys(constants, "constexpr")
source = ASTSource(
    _nearest,
    signature={name: types.get(name, "i32") for name in _nearest.arg_names},
    constexprs={(_nearest.arg_names.index(key),): constants[key] for key in constants},
)
assert "cubin" in triton.compile(source, target=GPUTarget("cuda", 90, 32)).asm
print("compiled the nearest")
"""


def test_every_profile_compiles(tmp_path):
    environment = {**os.environ, "TRITON_INTERPRET": "0", "TRITON_CACHE_DIR": str(tmp_path)}
    environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    # On a GPU, test_triton_programs.py compiles all of them, and runs them.
    few = ["few"] if torch.cuda.is_available() else []
    done = subprocess.run(
        [sys.executable, "-c", CODE, *few], capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.count("compiled") == (7 if few else 23)
