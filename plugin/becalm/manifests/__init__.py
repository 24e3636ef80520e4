"""Rendered manifests as Kubernetes and Argo CD read them: split, parse, write, identify, compare."""
