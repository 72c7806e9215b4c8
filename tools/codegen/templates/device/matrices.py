"""Device functions that factor and solve matrices of a few rows, which lie whole in a tile, among other dimensions of it."""

from __future__ import annotations

MATRICES: dict[str, str] = {
    "cholesky_factor": '''
@triton.jit
def cholesky_factor(x, i, j, N: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Symmetric matrices x of N rows -> lower factors, NaN where they are not positive definite; i and j are positions along axes."""
    factor = x - x
    for k in tl.static_range(N):
        column = tl.sum(tl.where(j == k, x, 0.0), COLUMNS, keep_dims=True)
        pivot = tl.sqrt_rn(tl.sum(tl.where(i == k, column, 0.0), ROWS, keep_dims=True))
        column = tl.where(i > k, column / pivot, tl.where(i == k, pivot, 0.0))
        factor = tl.where(j == k, column, tl.where(j > k, 0.0, factor))
        x -= column * tl.sum(tl.where(i == j, column, 0.0), ROWS, keep_dims=True)
    return factor
''',
    "solve_lower": '''
@triton.jit
def solve_lower(factor, x, i, k, N: tl.constexpr, ROWS: tl.constexpr, SUMMED: tl.constexpr):
    """Lower factors along i and k, right sides x along i -> solutions along i, the first row first."""
    for row in tl.static_range(N):
        column = tl.sum(tl.where(k == row, factor, 0.0), SUMMED, keep_dims=True)
        pivot = tl.sum(tl.where(i == row, column, 0.0), ROWS, keep_dims=True)
        found = tl.sum(tl.where(i == row, x, 0.0), ROWS, keep_dims=True) / pivot
        x = tl.where(i == row, found, tl.where(i > row, x - column * found, x))
    return x
''',
    "solve_upper": '''
@triton.jit
def solve_upper(factor, x, i, k, N: tl.constexpr, ROWS: tl.constexpr, SUMMED: tl.constexpr):
    """Upper factors along i and k, right sides x along i -> solutions along i, the last row first."""
    for back in tl.static_range(N):
        row = N - 1 - back
        column = tl.sum(tl.where(k == row, factor, 0.0), SUMMED, keep_dims=True)
        pivot = tl.sum(tl.where(i == row, column, 0.0), ROWS, keep_dims=True)
        found = tl.sum(tl.where(i == row, x, 0.0), ROWS, keep_dims=True) / pivot
        x = tl.where(i == row, found, tl.where(i < row, x - column * found, x))
    return x
''',
}
"""By name."""
