"""Leaving cleanly: SIGTERM and SIGINT ask the loop to save and stop."""

import contextlib
import signal
import threading
from collections.abc import Iterator

import jax
from jax.experimental import multihost_utils


class StopRequest:
    """Whether, and by which signal, the run was asked to stop."""

    def __init__(self):
        self.signal: int | None = None

    def __call__(self, number, frame) -> None:
        """Notes the first signal; the same one again gives up at once."""
        if self.signal is not None:
            raise KeyboardInterrupt
        self.signal = number

    def reached(self, step: int) -> bool:
        """Whether to stop before this step; all processes of a job agree on it."""
        if jax.process_count() == 1:
            return self.signal is not None
        if multihost_utils.reached_preemption_sync_point(step):
            self.signal = self.signal or signal.SIGTERM
            return True
        return False


@contextlib.contextmanager
def stop_requests() -> Iterator[StopRequest]:
    """Catches SIGTERM and SIGINT for the time of the loop.

    In a job of several processes SIGTERM belongs to JAX's coordination service, which makes all of
    them stop at the same step.
    """
    request = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield request  # handlers can be set in the main thread only
        return
    numbers = [signal.SIGINT] if jax.process_count() > 1 else [signal.SIGTERM, signal.SIGINT]
    previous = {number: signal.signal(number, request) for number in numbers}
    try:
        yield request
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
