"""Vectors in memory, and the sets of rows that filters leave."""

import numpy as np

from knowledge.log.buckets import Bucket, union, without
from knowledge.vectors.fetched import Vectors


def rows(*numbers: int) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    """An array of rows."""
    return np.array(numbers, dtype=np.int64)


def test_only_vectors_of_other_words_are_missing() -> None:
    """A row whose words changed since its vector was put is asked for again; the others are not."""
    vectors = Vectors()
    vectors.put([0, 700], [[1.0, 0.0], [0.0, 1.0]], [5, 6])
    assert vectors.missing(rows(0, 3, 700), rows(5, 9, 8)).tolist() == [3, 700]


def test_the_nearest_are_the_largest_cosines() -> None:
    """The search is exact, among the rows that it is given."""
    vectors = Vectors()
    vectors.put([0, 1, 2], [[1.0, 0.0], [0.6, 0.8], [0.0, 1.0]], [1, 2, 3])
    assert {row for row, _ in vectors.nearest([1.0, 0.0], rows(0, 1, 2), 2)} == {0, 1}
    assert vectors.nearest([1.0, 0.0], rows(2), 2) == [(2, 0.0)]


def test_a_bucket_that_changes_is_sorted_again() -> None:
    """What is added and taken out after a bucket was read is seen by the next reader."""
    bucket = Bucket()
    bucket.add(3)
    assert bucket.rows.tolist() == [3]
    bucket.add(1)
    bucket.discard(3)
    bucket.discard(7)
    assert bucket.rows.tolist() == [1]


def test_buckets_are_joined_without_repeats() -> None:
    """An entry of two families is found once."""
    one, other = Bucket(), Bucket()
    for row in (4, 2):
        one.add(row)
    for row in (2, 9):
        other.add(row)
    assert union([one, other]).tolist() == [2, 4, 9]
    assert union([]).tolist() == []
    assert without(union([one, other]), other.rows).tolist() == [4]
