"""The same jobs in a few lines of torch, without a memory budget, checks or choices."""

from __future__ import annotations

from typing import Any


def rbf(torch: Any, X: Any, Y: Any, gamma: float) -> Any:
    squared = torch.addmm(Y.square().sum(1)[None, :], X, Y.T, alpha=-2.0)
    squared += X.square().sum(1)[:, None]
    return squared.mul_(-gamma).clamp_(max=0).exp_()


def by_chunks(torch: Any, X: Any, function: Any, chunk: int = 50_000) -> Any:
    return torch.cat([function(X[i : i + chunk]) for i in range(0, len(X), chunk)])


def nystroem(torch: Any, X: Any, m: int, gamma: float) -> Any:
    """Features over the first m rows of a shuffle."""
    points = X[torch.randperm(len(X), device=X.device)[:m]]
    values = rbf(torch, points.double(), points.double(), gamma)
    values.diagonal().add_(1e-7 * m)
    factor = torch.linalg.cholesky(values)
    root = torch.linalg.solve_triangular(
        factor, torch.eye(m, device=X.device).double(), upper=False
    )
    root = root.T.to(X.dtype).contiguous()
    return by_chunks(torch, X, lambda x: rbf(torch, x, points, gamma) @ root)


def exact_ridge(torch: Any, X: Any, Y: Any, T: Any, gamma: float, columns: int, steps: int) -> Any:
    """Preconditioned conjugate gradients on the kept matrix; scores of the rows T."""
    K = torch.cat([rbf(torch, x, X, gamma) for x in X.split(10_000)])
    chosen = torch.randperm(len(X), device=X.device)[:columns]
    inner = K[chosen][:, chosen].double()
    inner.diagonal().add_(1e-6 * columns)
    L = torch.linalg.cholesky(inner)
    Z = torch.linalg.solve_triangular(L, K[chosen].double(), upper=False)
    noise = float((K.diagonal() - Z.square().sum(0)).mean())
    S = Z @ Z.T
    S.diagonal().add_(noise)
    factor = torch.linalg.cholesky(S)

    def precondition(R: Any) -> Any:
        R = R.double()
        return ((R - Z.T @ torch.cholesky_solve(Z @ R, factor)) / noise).float()

    W, R = torch.zeros_like(Y), Y.clone()
    P = D = precondition(R)
    rho = (R * P).sum(0)
    for _ in range(steps):
        A = K @ D
        rate = rho / (D * A).sum(0)
        W, R = W + D * rate, R - A * rate
        P = precondition(R)
        new = (R * P).sum(0)
        D, rho = P + D * (new / rho), new
    return by_chunks(torch, T, lambda t: rbf(torch, t, X, gamma) @ W, 10_000)


def leave_one_out(torch: Any, Z: Any, Y: Any, alphas: Any) -> float:
    """The alpha of the least leave-one-out error of ridge on features, by eigenvectors."""
    values, vectors = torch.linalg.eigh((Z.T @ Z).double())
    U = Z @ vectors.float()
    squares, B = U.square(), (U.T @ Y).double()
    errors = []
    for alpha in alphas:
        weights = 1.0 / (values.clamp(min=0) + alpha)
        left = (Y - U @ (weights[:, None] * B).float()) / (1 - squares @ weights.float())[:, None]
        errors.append(left.square().mean())
    return float(alphas[int(torch.stack(errors).argmin())])


def k_means(torch: Any, Z: Any, k: int, sample: int, passes: int) -> float:
    """Greedy k-means++ on a sample, then Lloyd's passes; the objective."""
    S = Z[torch.randperm(len(Z), device=Z.device)[:sample]]
    norms = S.square().sum(1)
    trials = 2 + k.bit_length()
    centres = S[:1].clone()
    nearest = (norms - 2 * (S @ centres[0]) + norms[0]).clamp_(min=0)
    for _ in range(k - 1):
        candidates = S[torch.multinomial(nearest, trials, replacement=True)]
        squared = norms[:, None] - 2 * (S @ candidates.T) + candidates.square().sum(1)
        reduced = torch.minimum(nearest[:, None], squared.clamp_(min=0))
        best = reduced.sum(0).argmin()
        centres = torch.cat((centres, candidates[best][None]))
        nearest = reduced[:, best]
    for _ in range(passes):
        squares = centres.square().sum(1)
        parts = Z.split(200_000)
        labels = torch.cat([(squares - 2 * (z @ centres.T)).argmin(1) for z in parts])
        sums = torch.zeros_like(centres).index_add_(0, labels, Z)
        centres = sums / torch.bincount(labels, minlength=k).clamp(min=1)[:, None]
    return float((Z - centres[labels]).square().sum())


def principal_components(torch: Any, Z: Any, count: int) -> Any:
    mean = Z.mean(0)
    moments = (Z.T @ Z).double() / len(Z) - torch.outer(mean, mean).double()
    _, vectors = torch.linalg.eigh(moments)
    return (Z - mean) @ vectors[:, -count:].float()


def laplacian(torch: Any, X: Any, points: Any, W: Any, gamma: float) -> Any:
    def scores(x: Any) -> Any:
        return torch.cdist(x, points, p=1.0).mul_(-gamma).exp_() @ W

    return by_chunks(torch, X, scores, 10_000)


def ridge_in_blocks(
    torch: Any, X: Any, Y: Any, T: Any, blocks: int, gamma: float, alpha: float
) -> Any:
    """Exact ridge inside the blocks of a few passes of k-means; scores of the rows T."""
    centres = X[torch.randperm(len(X), device=X.device)[:blocks]]

    def nearest(rows: Any) -> Any:
        return by_chunks(torch, rows, lambda x: torch.cdist(x, centres).argmin(1), 200_000)

    for _ in range(10):
        labels = nearest(X)
        sums = torch.zeros_like(centres).index_add_(0, labels, X)
        centres = sums / torch.bincount(labels, minlength=blocks).clamp(min=1)[:, None]
    labels, others = nearest(X), nearest(T)
    out = torch.zeros((len(T), Y.shape[1]), device=X.device)
    for block in range(blocks):
        mine = torch.nonzero(labels == block)[:, 0]
        asked = torch.nonzero(others == block)[:, 0]
        if len(mine) and len(asked):
            K = rbf(torch, X[mine], X[mine], gamma)
            K.diagonal().add_(alpha)
            W = torch.cholesky_solve(Y[mine], torch.linalg.cholesky(K))
            out[asked] = rbf(torch, T[asked], X[mine], gamma) @ W
    return out
