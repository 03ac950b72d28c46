"""``mlperf_logging.result_summarizer``."""
