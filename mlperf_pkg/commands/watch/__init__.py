"""Follow logs while they are written: findings that are certain, evaluations, and the expected end.

``watching`` follows several logs, ``session`` one log. ``follow`` reads new bytes, ``judge`` checks
them, ``course`` reads the training so far, ``goal`` the target, ``forecast`` predicts the end.
``events`` defines the events, ``show`` puts them into words, ``display`` writes them.
"""
