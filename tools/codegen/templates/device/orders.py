"""Device functions that put rows in order: floats as whole numbers, and the largest of keys no two of which are alike.

A bitonic network as in "Massively parallel top-k" (Shanbhag, Pirk, Madden, 2018): runs of the wanted length are sorted, then the larger
of two runs' elements are kept and merged. Each exchange takes the other of two neighbours as their sum less oneself, which wraps around.
Many of a long row are found by their least one, whose bits are chosen one after the other by counting; these alone are then sorted.
"""

from __future__ import annotations

ORDERS: dict[str, str] = {
    "ordered_bits": '''
@triton.jit
def ordered_bits(x):
    """x, float32 -> whole numbers in its order, int32: NaN above all, -0.0 as 0.0."""
    bits = tl.where(x == 0.0, 0.0, x).to(tl.int32, bitcast=True)
    return tl.where(x != x, 0x7FFFFFFF, bits ^ ((bits >> 31) & 0x7FFFFFFF))
''',
    "ordered_float": '''
@triton.jit
def ordered_float(bits):
    """What `ordered_bits` was given."""
    return (bits ^ ((bits >> 31) & 0x7FFFFFFF)).to(tl.float32, bitcast=True)
''',
    "largest_in_turn": '''
@triton.jit
def largest_in_turn(keys, count, LEAST: tl.constexpr, WIDTH: tl.constexpr):
    """keys [rows, n] -> the `count` largest, in order [rows, WIDTH]: one maximum after the other."""
    place = tl.arange(0, WIDTH)[None, :]
    found = tl.full([keys.shape[0], WIDTH], LEAST, keys.dtype)
    for turn in range(count):
        best = tl.max(keys, axis=1, keep_dims=True)
        found = tl.where(place == turn, best, found)
        keys = tl.where(keys == best, LEAST, keys)
    return found
''',
    "largest_halves_in_turn": '''
@triton.jit
def largest_halves_in_turn(keys, count, LEAST: tl.constexpr, WIDTH: tl.constexpr):
    """keys [rows, n] of 64 bits -> the `count` largest, in order [rows, WIDTH]: in each turn the largest upper half, then the lower."""
    place = tl.arange(0, WIDTH)[None, :]
    upper = (keys >> 32).to(tl.int32)
    lower = tl.where(keys == LEAST, -2147483648, keys.to(tl.int32))
    found_upper = tl.full([keys.shape[0], WIDTH], -2147483648, tl.int32)
    found_lower = tl.full([keys.shape[0], WIDTH], -2147483648, tl.int32)
    for turn in range(count):
        best = tl.max(upper, axis=1, keep_dims=True)
        which = tl.max(tl.where(upper == best, lower, -2147483648), axis=1, keep_dims=True)
        found_upper = tl.where(place == turn, best, found_upper)
        found_lower = tl.where(place == turn, which, found_lower)
        taken = lower == which
        upper = tl.where(taken, -2147483648, upper)
        lower = tl.where(taken, -2147483648, lower)
    return (found_upper.to(tl.int64) << 32) | (found_lower.to(tl.int64) & 4294967295)
''',
    "largest_in_order": '''
@triton.jit
def exchanged(cube, down, AXIS: tl.constexpr, AXES: tl.constexpr):
    """cube [2] * AXES -> the same with the larger of two neighbours along an axis first where `down` is 1, last where it is 0."""
    other = tl.sum(cube, axis=AXIS, keep_dims=True).to(cube.dtype) - cube
    second = tl.reshape(tl.arange(0, 2), [1] * AXIS + [2] + [1] * (AXES - 1 - AXIS))
    return tl.where((other > cube) == ((second ^ down) != 0), other, cube)


@triton.jit
def merged_runs(cube, STAGE: tl.constexpr, WHOLE: tl.constexpr, AXES: tl.constexpr):
    """cube [2] * AXES -> its bitonic runs of 2 ** STAGE sorted: all falling where `WHOLE`, else falling and rising in turn."""
    if WHOLE:
        down = tl.full([1] * AXES, 1, tl.int32)
    else:
        down = 1 - tl.reshape(tl.arange(0, 2), [1] * (AXES - 1 - STAGE) + [2] + [1] * STAGE)
    for step in tl.static_range(STAGE):
        cube = exchanged(cube, down, AXES - STAGE + step, AXES)
    return cube


@triton.jit
def largest_in_order(keys, LOG_ROWS: tl.constexpr, LOG_LENGTH: tl.constexpr, LOG_WIDTH: tl.constexpr):
    """keys [rows, n] -> the largest, in order [rows, width], by a bitonic network."""
    if LOG_WIDTH == 0:
        return tl.max(keys, axis=1, keep_dims=True)
    else:
        cube = tl.reshape(keys, [2] * (LOG_ROWS + LOG_LENGTH))
        for stage in tl.static_range(1, LOG_WIDTH + 1):
            cube = merged_runs(cube, stage, stage == LOG_LENGTH, LOG_ROWS + LOG_LENGTH)
        for length in tl.static_range(LOG_LENGTH - LOG_WIDTH):
            cube = tl.max(cube, axis=LOG_ROWS + LOG_LENGTH - length - 1 - LOG_WIDTH)
            cube = merged_runs(cube, LOG_WIDTH, length == LOG_LENGTH - LOG_WIDTH - 1, LOG_ROWS + LOG_LENGTH - length - 1)
        return tl.reshape(cube, [keys.shape[0], 2**LOG_WIDTH])
''',
    "largest_above": '''
@triton.jit
def least_of_largest(keys, count, LEAST: tl.constexpr, BITS: tl.constexpr):
    """keys [rows, n] -> the `count`-th largest of each row, or somewhat less where as many are above that [rows, 1]."""
    found = tl.full([keys.shape[0], 1], LEAST, keys.dtype)
    reached = tl.full([keys.shape[0], 1], keys.shape[1], tl.int32)
    bit = BITS - 1
    while (bit >= 0) & (tl.max(reached) > count):
        # the uppermost bit is the sign: with it set the least number becomes zero
        raised = found + (tl.full([1, 1], 1, keys.dtype) << bit)
        above = tl.sum((keys >= raised).to(tl.int32), axis=1, keep_dims=True)
        found = tl.where(above >= count, raised, found)
        reached = tl.where(above >= count, above, reached)
        bit -= 1
    return found


@triton.jit
def largest_above(keys, found_ptr, count, LEAST: tl.constexpr, BITS: tl.constexpr, WIDTH: tl.constexpr):
    """keys [rows, n] -> the `count` largest, in no order [rows, WIDTH]: those that reach the least of them, laid together in memory."""
    chosen = (keys >= least_of_largest(keys, count, LEAST, BITS)) & (keys != LEAST)
    place = tl.cumsum(chosen.to(tl.int32), axis=1) - 1
    rows = (tl.program_id(0) * keys.shape[0] + tl.arange(0, keys.shape[0])[:, None]) * WIDTH
    tl.store(found_ptr + rows + place, keys, mask=chosen & (place < count))
    # what the program's other threads have stored is read
    tl.debug_barrier()
    wide = tl.arange(0, WIDTH)[None, :]
    last = tl.minimum(tl.max(place, axis=1, keep_dims=True) + 1, count)
    return tl.load(found_ptr + rows + wide, mask=wide < last, other=LEAST)
''',
}
"""By name."""
