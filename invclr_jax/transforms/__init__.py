"""t: what changes a picture. Pure functions of (x, alpha, beta); nothing random inside apply."""
