"""Run Python without the modules, functions and constants that Windows lacks.

python -m tests.helpers.windows COMMAND...

Every module of the package is imported; then command lines are run until one fails. Files,
processes and terminals stay those of this system.
"""

import os
import pkgutil
import select
import signal
import sys

MODULES = ("fcntl", "grp", "pty", "pwd", "resource", "syslog", "termios", "tty")
NAMES = {
    os: (
        "O_CLOEXEC",
        "O_DIRECTORY",
        "O_NOFOLLOW",
        "O_NONBLOCK",
        "WIFSIGNALED",
        "chown",
        "fchmod",
        "fork",
        "geteuid",
        "getuid",
        "killpg",
        "mkfifo",
        "pread",
        "register_at_fork",
        "sched_getaffinity",
        "setsid",
        "statvfs",
    ),
    signal: (
        "SIGALRM",
        "SIGCHLD",
        "SIGHUP",
        "SIGKILL",
        "SIGPIPE",
        "SIGQUIT",
        "SIGUSR1",
        "alarm",
        "pthread_sigmask",
        "setitimer",
    ),
    select: ("POLLIN", "epoll", "poll"),
}


def mask() -> None:
    for module in MODULES:
        sys.modules[module] = None  # type: ignore[assignment]  # its import raises ImportError
    for owner, names in NAMES.items():
        for name in names:
            if hasattr(owner, name):
                delattr(owner, name)
    os.supports_dir_fd.clear()  # by it, shutil chooses how it removes folders when it is imported


def import_all() -> None:
    import mlperf_pkg  # noqa: PLC0415 - masked before

    modules = [m.name for m in pkgutil.walk_packages(mlperf_pkg.__path__, "mlperf_pkg.")]
    for name in modules:
        __import__(name)
    print(len(modules))  # noqa: T201


if __name__ == "__main__":
    import subprocess  # noqa: F401 - chooses between Windows and others when it is imported

    mask()
    import_all()
    from mlperf_pkg.cli.main import cli, main

    *first, last = sys.argv[1:]
    for command in first:
        if status := cli(command.split(), prog_name="mlperf-pkg", standalone_mode=False):
            sys.exit(f"{command}: exit status {status}")
    sys.argv[1:] = last.split()
    main()
