"""Survey, settle, replay: a chart that draws becomes one that renders the same every time."""
