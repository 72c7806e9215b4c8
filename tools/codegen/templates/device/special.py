"""Device functions of the gamma and Bessel families, accurate to a few units in the last place of a float32.

Polynomials and Chebyshev series are fits to float64 values; where each holds is as in the Cephes library.
"""

from __future__ import annotations

from collections.abc import Sequence

_NEAR_ONE = (
    0.177428387, -0.178384664, 0.0362746822, -0.0500304956, 0.109883773, -0.118890867, 0.124456055, -0.143355656, 0.16961446,
    -0.20741545, 0.270579448, -0.400685156, 0.822467043, -0.577215666,
)  # fmt: skip
"""log(gamma(1 + t)) / t for t from -1/2 to 1/2, the highest power first."""
_NEAR_TWO = (
    0.000115003557, -0.000253861844, 0.000505657421, -0.0011858377, 0.00289095619, -0.00738617764, 0.0205807883, -0.0673522813,
    0.322467034, 0.422784335,
)  # fmt: skip
"""log(gamma(2 + t)) / t, the same."""
_I0E_NEAR = (
    0.338397637, -0.304682672, 0.171620901, -0.0949010969, 0.0493052842, -0.0237374148, 0.0105464604, -0.00432430999, 0.00163947561,
    -0.000576375573, 0.000188502885, -5.754195e-05, 1.6448448e-05, -4.41673835e-06, 1.11738754e-06, -2.67079385e-07, 6.04699499e-08,
    -1.30002499e-08,
)  # fmt: skip
"""exp(-x) I0(x) for x from 0 to 8, as a Chebyshev series in x / 4 - 1."""
_I0E_FAR = (
    0.402245206, 0.0033691157, 6.8897553e-05, 2.89136871e-06, 2.04891702e-07, 2.26666702e-08,
)  # fmt: skip
"""exp(-x) I0(x) sqrt(x) from 8 on, as one in 16 / x - 1."""
_I1E_NEAR = (
    0.126293593, -0.176416518, 0.102643659, -0.0529459811, 0.024726449, -0.0105640849, 0.00415642294, -0.00151357245, 0.000512285955,
    -0.000161760815, 4.7815651e-05, -1.32731636e-05, 3.4702513e-06, -8.56872024e-07, 2.00329475e-07, -4.44505911e-08, 9.38153729e-09,
    -1.88724967e-09,
)  # fmt: skip
"""exp(-x) I1(x) / x for x from 0 to 8, as a Chebyshev series in x / 4 - 1."""
_I1E_FAR = (
    0.389288115, -0.00976109516, -0.000110588889, -3.88256234e-06, -2.51223429e-07, -2.63146653e-08,
)  # fmt: skip
"""exp(-x) I1(x) sqrt(x) from 8 on, as one in 16 / x - 1."""
_STEPS = 6
"""So many times gamma(x + 1) = x gamma(x) takes an argument below 8.5 to one about 2, or one that is not negative to 6 or more."""


def _horner(name: str, at: str, factors: Sequence[float]) -> str:
    """Write the steps of a polynomial, the factor of the highest power first."""
    rest = [f"    {name} = {name} * {at} + {factor!r}".replace("+ -", "- ") for factor in factors[1:]]
    return "\n".join([f"    {name} = {factors[0]!r}", *rest])


def _clenshaw(name: str, at: str, factors: Sequence[float]) -> str:
    """Write the steps of a Chebyshev series, the constant first."""
    lines = [f"    {name}, before = {factors[-1]!r}, 0.0"]
    lines += [f"    {name}, before = 2.0 * {at} * {name} - before + {factor!r}, {name}".replace("+ -", "- ") for factor in factors[-2:0:-1]]
    return "\n".join([*lines, f"    {name} = {at} * {name} - before + {factors[0]!r}".replace("+ -", "- ")])


def _bessel(name: str, says: str, near: Sequence[float], far: Sequence[float], times: str, last: str) -> str:
    return f'''
@triton.jit
def {name}(x):
    """{says}"""
    size = tl.abs(x)
    is_far = size > 8.0
    at = tl.where(is_far, 0.0, size * 0.25 - 1.0)
{_clenshaw("near", "at", near)}
    beyond = tl.where(is_far, 16.0 / tl.where(is_far, size, 8.0) - 1.0, 0.0)
{_clenshaw("far", "beyond", far)}
    found = tl.where(is_far, far * tl.rsqrt(tl.where(is_far, size, 8.0)), near{times})
    return {last}
'''


def _repeated(lines: Sequence[str]) -> str:
    return "\n".join(f"    {line}" for _ in range(_STEPS) for line in lines)


SPECIAL: dict[str, str] = {
    "lgamma": f'''
@triton.jit
def log_gamma(x):
    """log |gamma(x)|: polynomials about one and two, where it is zero, Stirling's series far from zero, reflected below it."""
    size = tl.abs(x)
    z, product = size, tl.zeros_like(size) + 1.0
{_repeated(["is_above = z >= 2.5", "z = tl.where(is_above, z - 1.0, z)", "product = tl.where(is_above, product * z, product)"])}
    is_small = size < 0.5
    t = tl.where(is_small, size, size - 1.0)
{_horner("p", "t", _NEAR_ONE)}
    below = p * t - tl.where(is_small, tl.log(size), 0.0)
    t = z - 2.0
{_horner("p", "t", _NEAR_TWO)}
    w = 1.0 / size
    series = (0.0833333333 - w * w * (0.00277777778 - w * w * 0.000793650794)) * w
    far = (size - 0.5) * (tl.log(size) - 1.0) + 0.418938533 + series
    found = tl.where(size < 1.5, below, tl.where(size < 8.0, p * t + tl.log(product), far))
    part = size - tl.floor(size)
    turn = tl.sin(3.14159265 * tl.where(part > 0.5, 1.0 - part, part))
    reflected = 1.14472989 - tl.log(size) - tl.log(turn) - found
    return tl.where((x < 0.0) & (size < float("inf")), reflected, found)
''',
    "digamma": f'''
@triton.jit
def log_gamma_slope(x):
    """The derivative of log(gamma(x)): its series from six on, to which smaller arguments are taken, reflected below zero."""
    z = tl.where(x <= 0.0, 1.0 - x, x)
    total = tl.zeros_like(z)
{_repeated(["is_below = z < 6.0", "total = tl.where(is_below, total - 1.0 / z, total)", "z = tl.where(is_below, z + 1.0, z)"])}
    w = 1.0 / (z * z)
    series = w * (0.0833333333 - w * (0.00833333333 - w * (0.00396825397 - w * 0.00416666667)))
    found = total + tl.log(z) - 0.5 / z - series
    part = x - tl.floor(x + 0.5)
    turned = 3.14159265 * tl.cos(3.14159265 * part) / tl.sin(3.14159265 * part)
    at_poles = tl.where(x == 0.0, -1.0 / x, float("nan"))
    return tl.where(x > 0.0, found, tl.where(part == 0.0, at_poles, found - turned))
''',
    "i0e": _bessel("bessel_i0_scaled", "exp(-|x|) I0(x), the modified Bessel function.", _I0E_NEAR, _I0E_FAR, "", "found"),
    "i1e": _bessel(
        "bessel_i1_scaled",
        "exp(-|x|) I1(x), the modified Bessel function.",
        _I1E_NEAR,
        _I1E_FAR,
        " * size",
        "tl.where(x < 0.0, -found, found)",
    ),
}
"""By the map that needs them."""

SPECIAL_NAMES = {"lgamma": "log_gamma", "digamma": "log_gamma_slope", "i0e": "bessel_i0_scaled", "i1e": "bessel_i1_scaled"}
"""What each is called in the emitted source."""
