"""What holds for every test: no global state may leak out of it, and Hypothesis has three speeds."""
import os
import signal
import subprocess
import sys
import textwrap
import threading

import pytest
from hypothesis import HealthCheck, settings

import cgrad as cg

settings.register_profile("dev", max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", max_examples=200, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("long", max_examples=5000, deadline=None, suppress_health_check=list(HealthCheck))
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if os.environ.get("CI") else "dev"))

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:      # so starts what a shell runs in the background; tests send Control-C to programs of theirs
    signal.signal(signal.SIGINT, signal.default_int_handler)


def global_state():
    return {
        "grad mode": cg.is_grad_enabled(),
        "default dtype": cg.get_default_dtype(),
        "number of threads": cg.get_num_threads(),
        "Python threads": threading.active_count(),
    }


def restore(state):
    cg.set_grad_enabled(state["grad mode"])
    cg.set_default_dtype(state["default dtype"])
    cg.set_num_threads(state["number of threads"])


@pytest.fixture(autouse=True)
def no_global_state_leaks():
    """Fail a test that leaves grad mode, default dtype or thread count other than it found them, and set them right again."""
    before = global_state()
    yield
    after = global_state()
    if after != before:
        restore(before)
        changed = ", ".join(f"{name}: {before[name]} -> {after[name]}" for name in before if before[name] != after[name])
        pytest.fail(f"the test leaks global state ({changed})")


@pytest.fixture
def run_python():
    """Run code in an interpreter of its own, for what may crash, hang or needs a fresh process; returns what it prints."""
    def run(code, timeout=300):
        out = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=timeout)
        assert out.returncode == 0, f"exit {out.returncode}\n{out.stdout[-1000:]}\n{out.stderr[-3000:]}"
        return out.stdout
    return run
