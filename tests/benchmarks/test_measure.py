"""Timing in turns: who is called how often, and what is kept."""

import time

from benchmarks.measure import interleaved, medians


def test_contenders_take_turns_and_unmeasured_calls_are_left_out(monkeypatch):
    clock, called = [0.0], []
    monkeypatch.setattr(time, "perf_counter", lambda: clock[0])

    def contender(name, seconds):
        def call():
            called.append(name)
            clock[0] += seconds[called.count(name) - 1]

        return call

    # Two turns of two calls, each after one that is not measured; the first turn is warm-up.
    quick = contender("quick", [9, 9, 9, 5, 1, 2])
    slow = contender("slow", [9, 9, 9, 7, 4, 6])
    seconds = interleaved({"quick": quick, "slow": slow}, repeats=1, calls=2)
    assert called == ["quick"] * 3 + ["slow"] * 3 + ["quick"] * 3 + ["slow"] * 3
    assert seconds == {"quick": [1.5], "slow": [5.0]}
    assert medians(seconds) == {"quick": 1.5, "slow": 5.0}


def test_one_call_per_turn_is_measured_by_itself():
    called = []
    seconds = interleaved({"a": lambda: called.append(1)}, repeats=3, warmup=2)
    assert len(called) == 5
    assert len(seconds["a"]) == 3
