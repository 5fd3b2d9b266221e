"""Scripts that write documentation pages from committed results.

Each runs as `python -m tools.pages.NAME` from the root of the repository: it reads the JSON files
in `results/` and writes Markdown and figures to `docs/`.
"""

from pathlib import Path

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results"
PAGES = ROOT / "docs" / "results"
