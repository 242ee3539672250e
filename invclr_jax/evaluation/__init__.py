"""What the paper measures, as functions of arrays: features, probes, invariance, ensembling."""
