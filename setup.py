"""What setup.cfg cannot say: the one part in C, without which the rest works as well."""

from setuptools import Extension, setup

setup(
    ext_modules=[
        Extension(
            "mlperf_pkg.log._scan",
            ["mlperf_pkg/log/_scan.c"],
            define_macros=[("Py_LIMITED_API", "0x030B0000")],
            py_limited_api=True,
            optional=True,
        )
    ]
)
