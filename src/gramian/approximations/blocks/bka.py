"""BKA: a block-diagonal approximation."""

from __future__ import annotations

from typing import ClassVar

from gramian.approximations.blocks.base import BlockApproximation
from gramian.backend.array_ops import Array
from gramian.estimators.parameters import KernelLike, RandomState
from gramian.samplers import Sampler

__all__ = ["BKA"]


class BKA(BlockApproximation):
    """Block kernel approximation: a Nyström approximation of each block of rows, 0 elsewhere.

    The rows are partitioned by k-means. K̃ is block-diagonal: kernel values between clusters, which
    are small for a local kernel (a large gamma), are set to 0. A row has features in its own block
    only, so that n rows take n times the rank of a block. (Si, Hsieh and Dhillon, 2014.)

    Parameters
    ----------
    kernel : str, Kernel or callable, default="rbf"
        See :func:`gramian.kernel_names` for the names. ``kernel__gamma`` sets its parameters.
    n_components : int, default=100
        The total rank, over all blocks.
    n_blocks : int, default=10
        The number of blocks. Ignored if ``partition`` has the labels.
    ranks : {"spectrum", "size", "equal"}, default="spectrum"
        How the total rank is divided: by the largest eigenvalues of all blocks, estimated on
        samples; in proportion to the blocks' rows; or equally.
    landmarks : str or Sampler, default="uniform"
        How each block's landmarks are selected, three times its rank and ten more; see
        :func:`gramian.sampler_names`.
    partition : {"kmeans", "spectral", "random"} or array of shape (n,), default="kmeans"
        k-means in input space, on a subsample; spectral clustering of the kernel matrix of a
        subsample; random; or the block of each row. New rows go to the nearest centre.
    random_state : int, Generator or None, default=None

    Attributes
    ----------
    labels_ : array of shape (n,)
        The block of each training row.
    block_sizes_, ranks_ : array of shape (blocks,)
        The number of training rows and the rank of each block.
    centres_ : array of shape (blocks, d)
    landmarks_ : list of Landmarks
        The landmarks of each block.
    n_components_ : int
        The total rank in use.
    nbytes_ : int
        The memory of the training rows' factors.
    times_ : dict
        Seconds for each step of the fit.
    kernel_ : Kernel
        The kernel in use, with its parameters fitted.

    See Also
    --------
    MEKA : the same with links between blocks.

    References
    ----------
    - S. Si, C.-J. Hsieh and I. S. Dhillon, Memory efficient kernel approximation, ICML 2014.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from gramian import BKA, RBF
    >>> X = load_digits().data / 16
    >>> approximation = BKA(RBF(1.0), 200, random_state=0).fit(X)
    >>> approximation.n_components_, int(approximation.block_sizes_.sum())
    (200, 1797)
    >>> approximation.nbytes_ < 0.2 * approximation.transform(X).nbytes
    True
    """

    compared: ClassVar = {"BKA": {}}

    def __init__(
        self,
        kernel: KernelLike = "rbf",
        n_components: int = 100,
        *,
        n_blocks: int = 10,
        ranks: str = "spectrum",
        landmarks: str | Sampler = "uniform",
        partition: str | Array = "kmeans",
        random_state: RandomState = None,
    ) -> None:
        self.kernel = kernel
        self.n_components = n_components
        self.n_blocks = n_blocks
        self.ranks = ranks
        self.landmarks = landmarks
        self.partition = partition
        self.random_state = random_state
