"""The program ``mlperf-pkg``, also as ``python -m mlperf_pkg``."""

import os
import signal

_INTERRUPTED = 128 + signal.SIGINT


def main() -> None:
    """Run the command line; Ctrl-C ends it silently, even while modules are imported."""
    before = signal.getsignal(signal.SIGINT)
    try:
        if before is signal.default_int_handler:  # which would print a traceback
            signal.signal(signal.SIGINT, lambda *_: os._exit(_INTERRUPTED))
        from mlperf_pkg.cli.main import main as run  # noqa: PLC0415 - after the handler is set

        signal.signal(signal.SIGINT, before)
        run()
    except KeyboardInterrupt:
        os._exit(_INTERRUPTED)


if __name__ == "__main__":
    main()
