"""The random walk of faults: tests/vm/test_soak.py."""
