"""Device functions of the gamma and Bessel families, accurate to a few units in the last place of a float32.

Polynomials and Chebyshev series are fits to float64 values; where each holds is as in the Cephes library.
"""

from __future__ import annotations

from collections.abc import Sequence

_GAMMA_OVER = (1.98927157e-05, 0.00641480222, 0.121093619, 0.603966962, 1.04771069, 0.577215663)
_GAMMA_UNDER = (0.00181133561, 0.0623311017, 0.540629164, 1.72880848, 2.23999831, 1.0)
"""log(gamma(1 + t)) / t / (t - 1) for t from -1/2 to 7 as a quotient of polynomials, the highest power first: to 1e-8 of itself."""
_SLOPE_OVER = (0.00110507888, 0.0520725001, 0.497951033, 1.46552776, 1.25038015)
_SLOPE_UNDER = (0.000195566338, 0.0152611568, 0.224284428, 1.06484639, 1.85561258, 1.0)
"""The slope of log(gamma(1 + t)) over t's distance from where that is zero, the same."""
_HALF_TURN = (0.0775603858, -0.598242126, 2.55006973, -5.16770968, 3.14159264)
"""sin(pi p) / p for p from 0 to 1/2, in p * p."""
_COTANGENT_OVER, _COTANGENT_UNDER = (0.0984957789, -1.96927059, 4.0), (0.202637998, -1.20244942, 1.0)
"""pi p / tan(pi p) / (1/4 - p * p) for p from -1/2 to 1/2, in p * p."""
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


SPECIAL: dict[str, str] = {
    "lgamma": f'''
@triton.jit
def log_gamma(x):
    """log |gamma(x)|: a quotient of polynomials that keeps its zeros, Stirling's series from eight on, reflected below -1/2."""
    size = tl.abs(x)
    is_small, is_far = size < 0.5, size >= 8.0
    t = tl.where(is_small, x, size - 1.0)
{_horner("over", "t", _GAMMA_OVER)}
{_horner("under", "t", _GAMMA_UNDER)}
    w = tl.where(is_far, 1.0, over) / tl.where(is_far, size, under)
    near, log_size = w * t * (t - 1.0), tl.log(size)
    series = (0.0833333333 - w * w * (0.00277777778 - w * w * 0.000793650794)) * w
    far = (size - 0.5) * (log_size - 1.0) + 0.418938533 + series
    found = tl.where(is_far, far, tl.where(is_small, near - log_size, near))
    part = size - tl.floor(size)
    part = tl.where(part > 0.5, 1.0 - part, part)
    square = part * part
{_horner("turn", "square", _HALF_TURN)}
    reflected = 1.14472989 - tl.log(size * turn * part) - found
    return tl.where((x <= -0.5) & (size < float("inf")), reflected, found)
''',
    "digamma": f'''
@triton.jit
def log_gamma_slope(x):
    """The derivative of log(gamma(x)): a quotient of polynomials that keeps its zero, a series from eight on, reflected below -1/2."""
    z = tl.where(x <= -0.5, 1.0 - x, x)
    is_small, is_far = z < 0.5, z >= 8.0
    t = tl.where(is_small, z, z - 1.0)
{_horner("over", "t", _SLOPE_OVER)}
{_horner("under", "t", _SLOPE_UNDER)}
    over = (t - 0.461632133 - 1.24381498e-08) * over
    # below 1/2 it is that of 1 + z, less 1 / z
    over, under = tl.where(is_small, over * z - under, over), tl.where(is_small, under * z, under)
    w = tl.where(is_far, 1.0, over) / tl.where(is_far, z, under)
    square = w * w
    series = square * (0.0833333333 - square * (0.00833333333 - square * (0.00396825397 - square * 0.00416666667)))
    found = tl.where(is_far, tl.log(z) - 0.5 * w - series, w)
    part = x - tl.floor(x + 0.5)
    square = part * part
{_horner("over", "square", _COTANGENT_OVER)}
{_horner("under", "square", _COTANGENT_UNDER)}
    turned = (0.25 - square) * over / (under * part)
    return tl.where(x > -0.5, found, tl.where(part == 0.0, float("nan"), found - turned))
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
