"""Small device functions that emitted kernels call: elementary functions accurate to a few units in the last place of float32.

Triton's own `tl.exp` loses accuracy in proportion to its argument, and it has no `tanh`, `expm1` or `log1p` that also
run under the interpreter. Coefficients of `tanh` and `atan` are those of the Cephes library; `expm1` is a Taylor series.
"""

from __future__ import annotations

from tools.codegen.templates.device.conv_halves import HALVES
from tools.codegen.templates.device.conv_prepack import PREPACKED
from tools.codegen.templates.device.conv_split import IMAGES
from tools.codegen.templates.device.experts import EXPERTS
from tools.codegen.templates.device.gates import GATES
from tools.codegen.templates.device.gemm_split import SPLITS
from tools.codegen.templates.device.library import LIBRARY_HELPERS
from tools.codegen.templates.device.matrices import MATRICES
from tools.codegen.templates.device.orders import ORDERS
from tools.codegen.templates.device.special import SPECIAL, SPECIAL_NAMES
from tools.codegen.templates.device.vec4 import VEC4

HELPERS: dict[str, str] = {
    "exp": '''
@triton.jit
def exp_accurate(x):
    """exp(x) with the argument reduced by multiples of ln 2, so that large arguments keep their accuracy."""
    k = tl.minimum(tl.maximum(tl.floor(x * 1.4426950408889634 + 0.5), -126.0), 127.0)
    r = tl.fma(k, -1.4286068203094172e-6, tl.fma(k, -0.693145751953125, x))
    return tl.exp2(k) * tl.exp2(r * 1.4426950408889634)
''',
    "tanh": '''
@triton.jit
def tanh_accurate(x):
    """tanh(x): a polynomial near zero, where the exponential form would cancel."""
    z = x * x
    p = -5.70498872745e-3
    p = p * z + 2.06390887954e-2
    p = p * z - 5.37397155531e-2
    p = p * z + 1.33314422036e-1
    p = p * z - 3.33332819422e-1
    magnitude = 1.0 - 2.0 / (tl.exp(2.0 * tl.abs(x)) + 1.0)
    return tl.where(tl.abs(x) < 0.625, p * z * x + x, tl.where(x < 0, -magnitude, magnitude))
''',
    "expm1": '''
@triton.jit
def expm1_accurate(x):
    """exp(x) - 1 without cancellation near zero."""
    p = 2.48015873e-5
    p = p * x + 1.98412698e-4
    p = p * x + 1.38888889e-3
    p = p * x + 8.33333333e-3
    p = p * x + 4.16666667e-2
    p = p * x + 1.66666667e-1
    p = p * x + 0.5
    return tl.where(tl.abs(x) < 0.5, p * x * x + x, tl.exp(x) - 1.0)
''',
    "log1p": '''
@triton.jit
def log1p_accurate(x):
    """log(1 + x) without cancellation near zero: the rounding of 1 + x is divided out again."""
    u = 1.0 + x
    return tl.where(u == 1.0, x, tl.log(u) * (x / tl.where(u == 1.0, 1.0, u - 1.0)))
''',
    "log1p_unit": '''
@triton.jit
def log1p_up_to_one(x):
    """log(1 + x) for x from 0 to 1: x times a polynomial, off by 1.5e-7 of it at most."""
    p = -0.00324402121
    p = p * x + 0.0198514443
    p = p * x - 0.0569594987
    p = p * x + 0.106036514
    p = p * x - 0.153055906
    p = p * x + 0.196759388
    p = p * x - 0.249541342
    p = p * x + 0.333299637
    p = p * x - 0.499999017
    return x * (p * x + 1.0)
''',
    "atan": '''
@triton.jit
def atan_accurate(x):
    """atan(x): a polynomial near zero, to which larger arguments are turned by an eighth or a quarter of a circle."""
    size = tl.abs(x)
    far, near = size > 2.414213562373095, size > 0.4142135623730950
    turned = tl.where(far, -1.0 / tl.where(far, size, 1.0), tl.where(near, (size - 1.0) / (size + 1.0), size))
    # an infinity is turned by the whole quarter, and its quotient would be no number
    turned = tl.where(size == float("inf"), 0.0, turned)
    start = tl.where(far, 1.5707963267948966, tl.where(near, 0.7853981633974483, 0.0))
    z = turned * turned
    p = 8.05374449538e-2
    p = p * z - 1.38776856032e-1
    p = p * z + 1.99777106478e-1
    p = p * z - 3.33329491539e-1
    angle = start + (p * z * turned + turned)
    return tl.where(x < 0, -angle, angle)
''',
    "larger": '''
@triton.jit
def larger(one, other):
    """The larger of two, NaN if one of them is."""
    return tl.maximum(one, other, propagate_nan=tl.PropagateNan.ALL)
''',
    "log_of_sum": '''
@triton.jit
def log_of_sum(one, other):
    """What combines two parts of a running log(sum(exp)); equal infinities have no difference."""
    most = tl.maximum(one, other, propagate_nan=tl.PropagateNan.ALL)
    least = tl.minimum(one, other, propagate_nan=tl.PropagateNan.ALL)
    return most + log1p_up_to_one(tl.exp(tl.where(most == least, 0.0, least - most)))
''',
    "smaller": '''
@triton.jit
def smaller(one, other):
    """The smaller of two, NaN if one of them is."""
    return tl.minimum(one, other, propagate_nan=tl.PropagateNan.ALL)
''',
    "linear_step": '''
@triton.jit
def linear_step(factor, added, next_factor, next_added):
    """Two neighbouring steps of a linear recurrence as one."""
    return factor * next_factor, added * next_factor + next_added
''',
    "mish": '''
@triton.jit
def mish_activation(x):
    """x * tanh(softplus(x)) with one exponential and no cancellation."""
    e = tl.exp(tl.minimum(x, 20.0))
    n = e * (e + 2.0)
    return tl.where(x > 20.0, x, x * (n / (n + 2.0)))
''',
    "rsqrt": '''
@triton.jit
def inverse_root(x):
    """1 / sqrt(x); a GPU's own instruction takes a subnormal x for zero, so that it is made larger before."""
    is_small = x < 1.1754943508222875e-38
    found = tl.rsqrt(tl.where(is_small, x * 16777216.0, x))
    return tl.where(is_small, found * 4096.0, found)
''',
    "floor": '''
@triton.jit
def floor_of_any(x):
    """The next whole number below; a GPU's own instruction takes a subnormal x for zero."""
    whole = tl.floor(x)
    return tl.where(whole > x, whole - 1.0, whole)
''',
    "ceil": '''
@triton.jit
def ceil_of_any(x):
    """The next whole number above; a GPU's own instruction takes a subnormal x for zero."""
    whole = tl.ceil(x)
    return tl.where(whole < x, whole + 1.0, whole)
''',
    "round": '''
@triton.jit
def round_half_even(x):
    """The nearest whole number, an even one between two: what float32 has no fraction left for is taken back."""
    magnitude = tl.abs(x)
    whole = (magnitude + 8388608.0) - 8388608.0
    return tl.where(magnitude < 8388608.0, tl.where(x < 0.0, -whole, whole), x)
''',
    "mean": '''
@triton.jit
def centring_mean(total, count):
    """total / count, rounded correctly: equal values lie at their mean, and a norm does not magnify what is left of them."""
    return tl.div_rn(total, count + 0.0)
''',
    "pow": '''
@triton.jit
def power(x, y):
    """x ** y for floating x, through float64; negative bases take whole exponents only, as in torch."""
    zeros = tl.zeros_like(x + y).to(tl.float64)
    base = zeros + x
    exponent = zeros + y
    magnitude = tl.exp(exponent * tl.log(tl.where(base == 0.0, 1.0, tl.abs(base))))
    whole = tl.floor(exponent) == exponent
    odd = whole & (tl.floor(exponent * 0.5) * 2.0 != exponent)
    signed = tl.where(base < 0.0, tl.where(whole, tl.where(odd, -magnitude, magnitude), float("nan")), magnitude)
    at_zero = tl.where(exponent == 0.0, 1.0, tl.where(exponent > 0.0, 0.0, float("inf")))
    return tl.where(base == 0.0, at_zero, signed).to(tl.float32)
''',
    **SPECIAL,
    **ORDERS,
    **EXPERTS,
    "multiply": '''
@triton.jit
def multiply(one, other):
    """What combines two parts of a product."""
    return one * other
''',
    **GATES,
    **SPLITS,
    **HALVES,
    **IMAGES,
    **PREPACKED,
    **LIBRARY_HELPERS,
    **VEC4,
    **MATRICES,
}
"""By the map that needs them: text of the device function, or of a pass and its host function."""

NAMES = {
    "exp": "exp_accurate", "tanh": "tanh_accurate", "expm1": "expm1_accurate", "log1p": "log1p_accurate", "log1p_unit": "log1p_up_to_one",
    "mish": "mish_activation", "rsqrt": "inverse_root", "floor": "floor_of_any", "ceil": "ceil_of_any",
    "round": "round_half_even", "mean": "centring_mean", "pow": "power", "multiply": "multiply",
    "linear_step": "linear_step", "atan": "atan_accurate", "larger": "larger", "smaller": "smaller", "log_of_sum": "log_of_sum",
    **SPECIAL_NAMES,
    **{name: name for name in (*ORDERS, *EXPERTS, *GATES, *SPLITS, *HALVES, *IMAGES, *PREPACKED, *LIBRARY_HELPERS, *VEC4, *MATRICES)},
}  # fmt: skip
"""What each is called in the emitted source."""
