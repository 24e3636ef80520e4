"""What children of the tests are given."""

from __future__ import annotations

import os

#: What makes a child measure its coverage, where this process does.
MEASURE = {name: value for name, value in os.environ.items() if name.startswith("COVERAGE_")}
