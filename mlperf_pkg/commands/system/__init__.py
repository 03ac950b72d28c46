"""System descriptions: written for this machine, and checked by themselves.

``describe`` returns every field of a description. Required fields that could not be detected are
marked ``FILL IN``, which ``check_descriptions`` rejects. The host is read from ``/proc`` and
``/sys`` instead of through psutil, which has no processor models, caches, memory modules or
InfiniBand, and cannot read the ``/sys`` of another machine, as the tests do.
"""
