"""Follow logs while they are written: findings that are certain, evaluations, and the expected end.

``watching`` follows several logs, ``session`` one log. ``follow`` reads what is new, ``judge``
judges it, ``course`` reads the training so far, ``goal`` the target, ``forecast`` predicts the end.
``events`` are what happens, ``show`` words them, ``display`` writes them.
"""
