"""McNemar's test against the binomial sum, and bits that survive packing."""

import math

import numpy as np
import pytest

from experiments import mcnemar


def bits(seed, n=1003, share=0.8):
    return np.random.default_rng(seed).random(n) < share


def test_bits_survive_packing():
    for n in (1, 8, 1003):
        np.testing.assert_array_equal(mcnemar.unpack(mcnemar.pack(bits(0, n))), bits(0, n))


def test_the_p_value_is_the_tail_of_a_fair_coin():
    one, other = np.ones(20, bool), np.ones(20, bool)
    one[:2], other[2:11] = False, False
    gained, lost, p = mcnemar.compare(one, other)
    assert (gained, lost) == (9, 2)
    tail = sum(math.comb(11, k) for k in range(3)) / 2**11
    assert p == pytest.approx(2 * tail)
    assert mcnemar.compare(other, one)[2] == pytest.approx(p)
    assert mcnemar.compare(one, one) == (0, 0, 1.0)


def test_runs_are_compared_with_the_reference_of_their_seed():
    packed = {
        f"{name}/seed{k}": mcnemar.pack(bits(10 * k + i))
        for i, name in enumerate(("none", "ours"))
        for k in (0, 1)
    }
    del packed["none/seed1"]
    table = mcnemar.table(packed)
    gained, lost, _ = mcnemar.compare(bits(1), bits(0))
    assert [row[:3] for row in table.rows] == [["ours", "seed0", f"+{gained} −{lost}"]]


def test_other_rows_are_refused():
    with pytest.raises(ValueError, match="one has 4 rows, the other 5"):
        mcnemar.compare(bits(0, 4), bits(0, 5))
