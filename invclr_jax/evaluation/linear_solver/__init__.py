"""Solvers of linear models: L-BFGS on the device, ridge regression in closed form on the host."""
