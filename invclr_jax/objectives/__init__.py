"""What training minimises: contrastive losses, and the invariance penalty with its estimators."""
