"""``python -m mlperf_pkg`` is ``mlperf-pkg``."""

from mlperf_pkg.cli.main import main

if __name__ == "__main__":
    main()
