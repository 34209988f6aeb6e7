"""What the solutions of kernel ridge take in memory, step by step."""

from __future__ import annotations

import numpy as np

from gramian.backend import array_ops
from gramian.backend.memory import Amounts
from gramian.kernels.tiles import tile_columns
from gramian.learners.ridge.alpha_path import STEPS
from gramian.learners.ridge.systems import preconditioner_rank
from gramian.matrices.factors import Factors, projected
from gramian.matrices.gram import Gram
from gramian.samplers.pivoted import factor_bytes


def exact_steps(gram: Gram, n_targets: int, *, path: bool, direct: bool) -> list[Amounts]:
    """By a decomposition for a path of alphas, by a Cholesky factor, or by iteration."""
    n, item = gram.shape[0], array_ops.itemsize(gram.dtype)
    about = {
        "targets": 4 * 8 * n * (n_targets + 1),
        "blocks": gram.rows.walk_bytes(
            item * (min(n, tile_columns(gram.rows.example())) + 4 * n_targets)
        ),
    }
    if path:  # eigenvectors, and those scaled
        return [{**about, "kernel matrix": 8 * n**2, "decomposition": 3 * 8 * n**2}]
    if direct:
        return [{**about, "kernel matrix": 8 * n**2 + (4 * n**2 if item == 4 else 0)}]
    rank = preconditioner_rank(n)
    weighted = 8 * n * rank  # where rows have weights
    return [
        {**about, "preconditioner": factor_bytes(gram.rows, rank, np.float64) + weighted},
        {**about, "preconditioner": 8 * n * rank, "iteration": 8 * 8 * n * n_targets},
    ]


def targets(factors: Factors, n_targets: int) -> Amounts:
    """Targets, as they came and as numbers, and weights."""
    return {"targets": 8 * factors.shape[0] * (4 * n_targets + 4)}


def direct_steps(factors: Factors, n_alphas: int) -> list[Amounts]:
    """Sums over the rows, and a solution from them: by blocks where these are not linked."""
    if factors.core is None:
        copies = min(n_alphas, 8) + 1  # Cholesky factors, or eigenvectors
        return _from_sums(factors, copies * 8 * factors.parts.widest**2)
    return _from_sums(factors, 6 * 8 * factors.rank**2)


def blockwise_steps(factors: Factors) -> list[Amounts]:
    """Sums over the rows, and an iteration with the roots and eigenvectors of their blocks."""
    return _from_sums(factors, 4 * _blocks_bytes(factors))


def path_steps(factors: Factors, n_targets: int) -> list[Amounts]:
    """Sums over the rows, their decomposition, and a pass for the errors along a path."""
    r, C = factors.rank, projected(factors) or factors
    turned = 2 * 8 * C.rank * r  # from kernel values to directions
    spare = 8 * (2 * r + 3 * STEPS * (n_targets + 1))
    blocks = max((Z.walk_bytes(spare) for Z in C.parts), default=0)
    copies = 4 if factors.core is None else 7
    return [
        *_from_sums(factors, copies * 8 * r**2),
        {"sums": 8 * r**2, "decomposition": 2 * 8 * r**2 + turned, "blocks": blocks},
    ]


def beside_iteration(factors: Factors, n_targets: int) -> Amounts:
    """What passes over the rows of C take, where Z = C P, beside what is kept of C."""
    n, r = factors.shape[0], factors.rank
    C = projected(factors) or factors
    m = C.rank
    sampled = factors.parts[0].walk_bytes(8 * (m + r), 8 * r**2)
    passes = C.parts[0].walk_bytes(8 * m, 8 * m * n_targets)
    # The preconditioner and a copy; P, what it is decomposed into, and inner products of landmarks.
    small = 2 * 8 * r**2 if C is factors else 8 * (4 * m * r + 5 * r**2)
    return {
        **targets(factors, n_targets),
        "preconditioner": small + 8 * n,
        "blocks": max(sampled, passes),
    }


def _from_sums(factors: Factors, decomposition: int) -> list[Amounts]:
    """ZᵀWZ in one pass, in float64 where float32 might round too much, and what follows."""
    size, spare, P = 8 * factors.parts.widest**2, 0, 0
    walked = projected(factors)
    if walked is not None:
        spare, P = 8 * (walked.rank + factors.rank), 8 * walked.rank * factors.rank
    passes = max((Z.walk_bytes(spare, size) for Z in (walked or factors).parts), default=0)
    return [
        {"sums": P + passes},
        {"sums": _blocks_bytes(factors), "decomposition": decomposition},
    ]


def _blocks_bytes(factors: Factors) -> int:
    return 8 * sum(Z.shape[1] ** 2 for Z in factors.parts)
