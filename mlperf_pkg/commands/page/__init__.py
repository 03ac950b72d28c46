"""A report, and the results of all rounds, as one page of HTML that makes no request.

``entries`` has the result sets of a check and the cards of a round, ``content`` the values of the
page, ``html`` fills the template and packs the charts. ``history`` has the results of all rounds,
``history_charts`` draws them, ``history_html`` fills their template. Other pages share
``template``.
"""
