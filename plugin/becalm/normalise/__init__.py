"""Normalisation: the forms in which Kubernetes stores values, and what is known to change them."""
