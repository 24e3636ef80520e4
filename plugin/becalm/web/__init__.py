"""The web process: health, metrics and a page, made of what the service tells of each render."""
