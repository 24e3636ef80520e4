"""Argo CD's plugin contract: what its environment says about an application."""
