"""Products with kernel matrices on a GPU, without the matrix: Triton's twin of ``kernels.tiles``.

A program holds a tile of rows and loops over tiles of points. One product on the tensor cores gives
inner products, norms and profile are applied in registers, and a second product accumulates the
result. Kernel values never reach the device's memory.

Products are as accurate as float32 (three TF32 products each), or TF32 after
``torch.set_float32_matmul_precision("high")``. If V is float64, kernel values are multiplied and
summed in float64, for which GPUs also have tensor cores. Rows that need more precision than
float32, or that have very many columns, are left to the tiles.

There is one program for each profile. A kernel brings its profile as lines of Triton
(:class:`gramian.kernels.gpu_form.GpuForm`), so this module knows no kernel by name.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable
from functools import cache, partial
from types import FunctionType
from typing import TYPE_CHECKING, Any, TypeAlias
from zlib import crc32

import torch
import triton
import triton.language as tl
from triton.runtime.errors import OutOfResources

from gramian.backend import array_ops
from gramian.backend.array_ops import Array
from gramian.backend.triton_split import dot, leading_and_rest

if TYPE_CHECKING:
    from gramian.kernels.gpu_form import GpuForm

__all__ = ["FusedKernel", "lloyd_pass"]

WIDEST = 512  # with more features, storing kernel values is faster
MOST_TARGETS = 256  # columns of V; with more, tiles are recomputed too often
MOST_CENTRES = 64
LLOYD: dict[str, int] = {"ROWS": 64, "COLUMNS": 32, "num_warps": 2, "num_stages": 4}
LLOYD_PROGRAMS = 1056  # eight for each of the multiprocessors of an H200
LLOYD_BYTES = 256 * 1024**2  # at most, for the sums of all programs
DOUBLE: dict[str, int] = {"ROWS": 64, "POINTS": 64, "num_warps": 4, "num_stages": 2}
ALIGNED = 16  # numbers
FEW_TARGETS = 32  # columns of V, up to which it is read by rows
TERMS = 16_384  # added up in float32; sums of such sums are taken in float64

_PAIRINGS = {"squared": 0, "cityblock": 1, "inner": 2}

_profiled: Any = None  # the profile; each program has its own


def _product(
    X, X_norms, Y, Y_rest, Y_norms, V, V_rest, out,
    n, m, d, t, x_row, x_column, y_row, y_column, v_row, v_column, out_row,
    factor, n0, n1, n2, n3, span,
    PAIRING: tl.constexpr, FALLS: tl.constexpr, THRICE: tl.constexpr, WHOLE: tl.constexpr,
    ROWS: tl.constexpr, POINTS: tl.constexpr, COLUMNS: tl.constexpr, TARGETS: tl.constexpr,
):  # fmt: skip
    """Compute some rows of K(X, Y) V, from the points of one span."""
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    targets = tl.program_id(1) * TARGETS + tl.arange(0, TARGETS)
    columns = tl.arange(0, COLUMNS)
    first = tl.program_id(2).to(tl.int64) * span
    last = tl.minimum(first + span, m)
    is_row = rows < n
    total = tl.zeros((ROWS, TARGETS), dtype=V.dtype.element_ty)
    x_at = X + rows[:, None] * x_row
    if PAIRING == 0:
        x_norms = tl.load(X_norms + rows, mask=is_row, other=0.0)
    if WHOLE:
        held = is_row[:, None] & (columns[None, :] < d)
        x = tl.load(x_at + columns[None, :] * x_column, mask=held, other=0.0)
    for start in range(first, last, POINTS):
        points = start + tl.arange(0, POINTS)
        is_point = points < last
        y_at = points[None, :] * y_row
        if PAIRING == 1:
            u = tl.zeros((ROWS, POINTS), dtype=tl.float32)
            for c in range(d):
                a = tl.load(X + rows * x_row + c * x_column, mask=is_row, other=0.0)
                b = tl.load(Y + points * y_row + c * y_column, mask=is_point, other=0.0)
                u += tl.abs(a[:, None] - b[None, :])
            u = u * factor
        else:
            inner = tl.zeros((ROWS, POINTS), dtype=tl.float32)
            if WHOLE:
                met = (columns[:, None] < d) & is_point[None, :]
                at = y_at + columns[:, None] * y_column
                y = tl.load(Y + at, mask=met, other=0.0)
                rest = tl.load(Y_rest + at, mask=met, other=0.0) if THRICE else y
                inner = dot(x, y, rest, inner, THRICE)
            else:
                for c in range(0, d, COLUMNS):
                    here = c + columns
                    part = tl.load(
                        x_at + here[None, :] * x_column,
                        mask=is_row[:, None] & (here[None, :] < d),
                        other=0.0,
                    )
                    met = (here[:, None] < d) & is_point[None, :]
                    at = y_at + here[:, None] * y_column
                    y = tl.load(Y + at, mask=met, other=0.0)
                    rest = tl.load(Y_rest + at, mask=met, other=0.0) if THRICE else y
                    inner = dot(part, y, rest, inner, THRICE)
            if PAIRING == 0:
                y_norms = tl.load(Y_norms + points, mask=is_point, other=0.0)
                u = inner * factor + (x_norms[:, None] + y_norms[None, :])
                u = tl.minimum(u, 0.0) if FALLS else tl.maximum(u, 0.0)
            else:
                u = inner * factor
        values = _profiled(u, n0, n1, n2, n3)
        inside = is_point[:, None] & (targets[None, :] < t)
        at = points[:, None] * v_row + targets[None, :] * v_column
        v = tl.load(V + at, mask=inside, other=0.0)
        if V.dtype.element_ty == tl.float64:
            total = tl.dot(values.to(tl.float64), v, total, out_dtype=tl.float64)
        else:
            rest = tl.load(V_rest + at, mask=inside, other=0.0) if THRICE else v
            total = dot(values, v, rest, total, THRICE)
    at = out + (tl.program_id(2).to(tl.int64) * n + rows[:, None]) * out_row + targets[None, :]
    tl.store(at, total, mask=is_row[:, None] & (targets[None, :] < t))


@cache
def _program(profile: str) -> Any:
    """``_product`` with this profile, made when it is first needed.

    Triton looks up functions among the globals of their caller and puts them in its place, so each
    program is a copy of ``_product`` whose global ``_profiled`` is the profile. (Passing a function
    as a constexpr argument would be shorter, but some versions of Triton refuse that.)
    """
    file = f"<gramian profile {crc32(profile.encode())}>"
    # Triton reads the source of functions through linecache.
    linecache.cache[file] = len(profile), None, profile.splitlines(keepends=True), file
    space = dict(globals())
    exec(compile(profile, file, "exec"), space)
    space["_profiled"] = triton.jit(space["profile"])
    own = FunctionType(_product.__code__, space, "_product")
    own.__annotations__ = _product.__annotations__
    return triton.jit(own)


_Prepared: TypeAlias = tuple[Array, Array, int]  # rows, their norms, and their number


class FusedKernel:
    """Products of blocks of rows with kernel values of some points.

    Parameters
    ----------
    form : GpuForm
    points : tensor of shape (m, d), float32
    tolerance : float
        Allowed error of squared distances, as for the tiles.
    """

    def __init__(self, form: GpuForm, points: Array, tolerance: float) -> None:
        self.form = form
        self.tolerance = tolerance
        self.shape = tuple(points.shape)
        self._centre = None
        if form.pairing == "squared":
            self._centre = points.double().mean(0).float().double()
        self._points = self._prepared(points)

    def times(self, x: Array, V: Array) -> Array | None:
        """Return K(x, points) V in V's dtype; None if float32 is not accurate enough."""
        rows = self._prepared(x)
        if self._rounds_too_much(rows):
            return None
        return self._run(rows, self._points, V)

    def times_panels(self, x: Array, panels: list[tuple[slice, Array]], out: Array) -> Array | None:
        """Write K(x, first points) V to some columns of ``out``, for each pair of columns and V.

        V has a row for each of the first points. None if float32 is not accurate enough.
        """
        rows = self._prepared(x)
        if self._rounds_too_much(rows):
            return None
        y, norms, _ = self._points
        for columns, V in panels:
            m = V.shape[0]
            self._run(rows, (y[:m], norms[:m], m), V, out=out[:, columns])
        return out

    def transposed_times(self, x: Array, U: Array) -> Array | None:
        """Return K(x, points)ᵀ U in float64; None if float32 is not accurate enough."""
        rows = self._prepared(x)
        if self._rounds_too_much(rows):
            return None
        return self._run(self._points, rows, U, split=True)

    def _prepared(self, x: Array) -> _Prepared:
        """Return the rows, shifted to the centre of the points or transposed, and their norms."""
        x = x.float()
        if self._centre is not None:
            x = x - self._centre.float()
            return x, x.square().sum(1).mul_(self.form.scale), x.shape[0]
        if self.form.pairing == "cityblock":
            return x.T.contiguous().T, x, x.shape[0]
        return x.contiguous(), x, x.shape[0]

    def _rounds_too_much(self, rows: tuple[Array, Array, int]) -> bool:
        if self._centre is None or rows[2] == 0 or self.shape[0] == 0:
            return False
        largest = float(rows[1].abs().max() + self._points[1].abs().max())
        return array_ops.eps("float32") * largest > self.tolerance

    def _run(
        self, left: _Prepared, right: _Prepared, V: Array, *, split: bool = False,
        out: Array | None = None,
    ) -> Array:  # fmt: skip
        (x, x_norms, n), (y, y_norms, m) = left, right
        double, thrice = V.dtype == torch.float64, _precision() == "tf32x3"
        t, d = V.shape[1], self.shape[1]
        V = _laid_out(V) if double else _laid_out(V.float(), by_columns=t > FEW_TARGETS)
        y_parts = leading_and_rest(y) if thrice and self.form.pairing != "cityblock" else (y, y)
        v_parts = leading_and_rest(V) if thrice and not double else (V, V)
        tile = _tile(d, t, self.form.pairing == "cityblock", double)
        span = TERMS if split else max(m, 1)
        spans = max(-(-m // span), 1)
        if out is None:
            out = torch.empty((spans, n, t), dtype=V.dtype, device=V.device)
        if n and t:
            grid = (triton.cdiv(n, tile["ROWS"]), triton.cdiv(t, tile["TARGETS"]), spans)
            launch = partial(
                _program(self.form.profile)[grid],
                x, x_norms, *y_parts, y_norms, *v_parts, out,
                n, m, d, t, *x.stride(), *y.stride(), *V.stride(), out.stride(-2),
                -2.0 * self.form.scale if self._centre is not None else self.form.scale,
                *self.form.numbers, span,
                PAIRING=_PAIRINGS[self.form.pairing], FALLS=self.form.scale < 0, THRICE=thrice,
            )  # fmt: skip
            _with_less_memory(launch, tile)
        if out.ndim == 2:
            return out
        return out.sum(0, dtype=torch.float64) if split else out[0]


def _with_less_memory(launch: Callable[..., Any], tile: dict[str, Any]) -> None:
    """Launch a program with a tile, or with a smaller one if the GPU has too little memory for it.

    How much shared memory a program takes depends on the shapes and on the version of Triton.
    """
    smaller = {**tile, "num_stages": 1}
    for chosen in (tile, smaller, {**smaller, "POINTS": 32}, {**smaller, "POINTS": 16}):
        try:
            launch(**chosen)
        except OutOfResources:
            continue
        return
    launch(**{**smaller, "POINTS": 16, "ROWS": 32})


def _laid_out(V: Array, *, by_columns: bool = False) -> Array:
    """Return V with rows, or columns, that start at multiples of 64 bytes, and zeros after them.

    For many columns a program reads it twice as fast by columns.
    """
    V = V.T if by_columns else V
    V = torch.nn.functional.pad(V, (0, -V.shape[1] % ALIGNED)).contiguous()
    return V.T if by_columns else V


def _precision() -> str:
    """Use three TF32 products for full float32 precision, else one."""
    return "tf32x3" if torch.get_float32_matmul_precision() == "highest" else "tf32"


def _tile(d: int, t: int, by_columns: bool, double: bool) -> dict[str, Any]:
    """Return tile sizes, tuned on an H200; tiles of narrow rows are held whole."""
    targets = max(16, min(triton.next_power_of_2(t), 32 if double else 128))
    columns = max(16, min(triton.next_power_of_2(d), 64))
    tile = {"COLUMNS": columns, "TARGETS": targets, "WHOLE": not by_columns and d <= 64}
    if double:
        return {**tile, **DOUBLE}
    if targets > 64:
        return {**tile, "ROWS": 128, "POINTS": 64, "num_warps": 8, "num_stages": 2}
    if d > 64 and _precision() == "tf32":
        tile["COLUMNS"] = 32
        return {**tile, "ROWS": 128, "POINTS": 64, "num_warps": 8, "num_stages": 3}
    if d > 64:
        return {**tile, "ROWS": 128, "POINTS": 128, "num_warps": 8, "num_stages": 2}
    return {**tile, "ROWS": 128, "POINTS": 32, "num_warps": 4, "num_stages": 3}


@triton.jit
def _lloyd(
    Z, C, C_rest, offset, weights, labels, sums, masses, counts, n, r, k, stretch, scale,
    PRECISION: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, CENTRES: tl.constexpr,
):  # fmt: skip
    """Assign a range of rows to their nearest centres, tile by tile.

    If rows of a tile moved, they are read again, still in cache, and the change of the sums is
    added to the program's own sums: in float64, and in the same order every time. Rows in half
    precision are multiplied with both halves of C, and summed within a tile in float32.
    """
    program = tl.program_id(0).to(tl.int64)
    first = program * stretch
    last = tl.minimum(first + stretch, n)
    own = sums + program * k * r
    centres = tl.arange(0, CENTRES)
    columns = tl.arange(0, COLUMNS)
    is_centre = centres < k
    lengths = tl.load(offset + centres, mask=is_centre, other=float("inf"))
    mass = tl.zeros((CENTRES,), dtype=tl.float64)
    count = tl.zeros((), dtype=tl.int32)
    for start in range(first, last, ROWS):
        rows = start + tl.arange(0, ROWS)
        is_row = rows < last
        total = tl.zeros((ROWS, CENTRES), dtype=tl.float32)
        for c in range(0, r, COLUMNS):
            here = c + columns
            z = tl.load(
                Z + rows[:, None] * r + here[None, :],
                mask=is_row[:, None] & (here[None, :] < r),
                other=0.0,
            )
            at = here[:, None] * k + centres[None, :]
            inside = (here[:, None] < r) & is_centre[None, :]
            right = tl.load(C + at, mask=inside, other=0.0)
            if Z.dtype.element_ty == tl.float16:
                total = tl.dot(z, right, total)
                total = tl.dot(z, tl.load(C_rest + at, mask=inside, other=0.0), total)
            else:
                total = tl.dot(z, right, total, input_precision=PRECISION)
        new = tl.argmin(total * scale + lengths[None, :], axis=1)
        old = tl.load(labels + rows, mask=is_row, other=0).to(tl.int32)
        weight = tl.load(weights + rows, mask=is_row, other=0.0)
        arrives = tl.where(new[:, None] == centres[None, :], weight[:, None], 0.0)
        mass += tl.sum(arrives, axis=0)
        moved = is_row & (new != old)
        here_moved = tl.sum(moved.to(tl.int32), axis=0)
        if here_moved > 0:
            count += here_moved
            tl.store(labels + rows, new.to(tl.int64), mask=moved)
            leaves = tl.where(old[:, None] == centres[None, :], weight[:, None], 0.0)
            change = tl.trans(tl.where(moved[:, None], arrives - leaves, 0.0))
            for c in range(0, r, COLUMNS):
                here = c + columns
                z = tl.load(
                    Z + rows[:, None] * r + here[None, :],
                    mask=moved[:, None] & (here[None, :] < r),
                    other=0.0,
                )
                if Z.dtype.element_ty == tl.float16:
                    single = change.to(tl.float32)
                    gain = tl.dot(single, z.to(tl.float32), input_precision=PRECISION)
                    gain = gain.to(tl.float64)
                else:
                    gain = tl.dot(change, z.to(tl.float64), out_dtype=tl.float64)
                at = own + centres[:, None] * r + here[None, :]
                inside = is_centre[:, None] & (here[None, :] < r)
                tl.store(at, tl.load(at, mask=inside, other=0.0) + gain, mask=inside)
    tl.store(masses + program * k + centres, mass, mask=is_centre)
    tl.store(counts + program, count)


def lloyd_pass(
    z: Array, C: Array, offset: Array, weights: Array, labels: Array
) -> tuple[Array, Array, Array]:
    """Assign each row to the smallest column of zᵀC + offset, updating ``labels`` in place.

    Returns the change in the sum of rows of each label, of shape (k, columns), the sum of weights
    per label, and the number of rows that changed label; all on the device. A label of -1 belongs
    to no sum. It takes one pass over z, in float32 or half precision, and stores nothing whose size
    depends on the number of rows.
    """
    (n, r), k = z.shape, C.shape[1]
    most = max(LLOYD_BYTES // (8 * k * max(r, 1)), 1)
    stretch = triton.cdiv(triton.cdiv(n, min(LLOYD_PROGRAMS, most)), LLOYD["ROWS"]) * LLOYD["ROWS"]
    programs = triton.cdiv(n, max(stretch, 1))
    sums = torch.zeros((programs, k, r), dtype=torch.float64, device=z.device)
    masses = torch.zeros((programs, k), dtype=torch.float64, device=z.device)
    counts = torch.zeros(programs, dtype=torch.int32, device=z.device)
    C, scale = C.contiguous(), 1.0
    rest = C
    columns = LLOYD["COLUMNS"]
    if z.dtype == torch.float16:
        columns = 2 * columns
        scale = max(float(C.abs().max()), 1e-30) / 1024
        C, exact = (C / scale).half(), C / scale
        rest = (exact - C.float()).half()
    if n:
        _lloyd[(programs,)](
            z, C, rest, offset, weights, labels, sums, masses, counts, n, r, k, stretch, scale,
            PRECISION="tf32x3", CENTRES=max(16, triton.next_power_of_2(k)),
            **{**LLOYD, "COLUMNS": columns},
        )  # fmt: skip
    return sums.sum(0), masses.sum(0), counts.sum()[None]
