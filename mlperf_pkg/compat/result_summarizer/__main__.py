"""``python -m mlperf_pkg.compat.result_summarizer``."""

import sys

from mlperf_pkg.compat.result_summarizer import main

sys.exit(main())
