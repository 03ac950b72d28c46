"""``python -m mlperf_pkg.compat.result_summarizer``."""

import sys

from mlperf_pkg.compat.result_summarizer import main

if __name__ == "__main__":
    sys.exit(main())
