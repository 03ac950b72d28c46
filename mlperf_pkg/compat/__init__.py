"""The command lines and the last lines of mlperf-logging, for scripts that call its tools.

``python -m mlperf_pkg.compat.package_checker`` replaces the module of that name in
``mlperf_logging``, and likewise for the other tools. Verdicts and exit statuses are those of
mlperf-logging, most of whose tools exit with 0 on errors: ``--exit-status`` or
``MLPERF_PKG_EXIT_STATUS=1`` asks for 1.
"""
