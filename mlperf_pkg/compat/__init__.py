"""The command lines and the last lines of mlperf-logging, for scripts that call its tools.

``python -m mlperf_pkg.compat.package_checker`` replaces the module of that name in
``mlperf_logging``, and likewise for the other tools. Verdicts and exit statuses are those of
mlperf-logging, most of whose tools exit with 0 on errors: ``--exit-status`` or
``MLPERF_PKG_EXIT_STATUS=1`` asks for 1.

The modules also have the functions that programs import from mlperf-logging:
``package_checker.check_training_package``, ``compliance_checker.main`` and ``make_checker``,
``rcp_checker.RCP_Checker`` and ``check_directory``, ``result_summarizer.summarize_results``.

Unlike the rest of mlperf-pkg, ``package_checker`` and ``result_summarizer`` write ``scaling.json``
into a submission. Only the module ``official`` does this.
"""
