"""becalm: an Argo CD plugin that renders charts the same way every time."""

__version__ = "0.1.0"
