"""What poolings that make four neighbours a thread need besides their kernel: blocks of four taken apart and put together in registers."""

from __future__ import annotations

VEC4: dict[str, str] = {
    "quarters": '''
@triton.jit
def quarters(x):
    """Take [M, N, 4] apart into four [M, N], one of each place of the last dimension."""
    even, odd = tl.split(tl.reshape(x, [x.shape[0], x.shape[1], 2, 2]))
    e0, e2 = tl.split(even)
    e1, e3 = tl.split(odd)
    return e0, e1, e2, e3
''',
    "together": '''
@triton.jit
def together(e0, e1, e2, e3):
    """Put four [M, N] side by side: [M, N, 4]."""
    return tl.reshape(tl.join(tl.join(e0, e2), tl.join(e1, e3)), [e0.shape[0], e0.shape[1], 4])
''',
}
"""By name: text of the device function."""
