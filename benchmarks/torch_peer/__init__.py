"""The references of the benchmarks in PyTorch, written for this project as a PyTorch user would."""
