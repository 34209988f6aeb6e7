"""The theory behind the approximations, as functions that you can call and check.

Sources: "000" is the report on kernel approximation after Drineas and Mahoney (2005) and Drineas,
Kannan and Mahoney (2006), "002" is Si, Hsieh and Dhillon, Memory efficient kernel approximation
(2014), "003" is Calandriello and Rosasco, Statistical and computational trade-offs in kernel
k-means (2018), "004" is Kpotufe and Sriperumbudur, Gaussian sketching yields a J-L lemma in RKHS
(2020). The functions are for small matrices, in NumPy and float64, except
:func:`effective_dimension`, :func:`d_kernel`, :func:`d_kmeans`, :func:`d_kernel_bound` and
:func:`block_rank_bound`, which accept any number of rows. A "gram" is a :class:`gramian.Gram`, a
kernel together with rows X, or the symmetric matrix itself.
"""

from gramian.theory.blocks import (
    block_rank_bound,
    d_kernel,
    d_kernel_bound,
    d_kmeans,
    meka_bound,
)
from gramian.theory.bounds import (
    clustering_bound,
    columns_needed,
    kmeans_plus_plus_factor,
    nystrom_bound,
)
from gramian.theory.kernel_jl import (
    jl_bound,
    jl_distance_bound,
    jl_means_bound,
    jl_separation_bound,
    jl_sizes_needed,
)
from gramian.theory.landmarks import (
    effective_dimension,
    is_preserving,
    landmarks_needed,
    ridge_leverage_scores,
)
from gramian.theory.sketching import (
    approximate_product,
    linear_time_svd,
    product_bound,
    svd_bound,
)

__all__ = [
    "approximate_product",
    "block_rank_bound",
    "clustering_bound",
    "columns_needed",
    "d_kernel",
    "d_kernel_bound",
    "d_kmeans",
    "effective_dimension",
    "is_preserving",
    "jl_bound",
    "jl_distance_bound",
    "jl_means_bound",
    "jl_separation_bound",
    "jl_sizes_needed",
    "kmeans_plus_plus_factor",
    "landmarks_needed",
    "linear_time_svd",
    "meka_bound",
    "nystrom_bound",
    "product_bound",
    "ridge_leverage_scores",
    "svd_bound",
]
