"""A report, and the results of all rounds, as pages of HTML that make no request.

``entries`` has the result sets of a check and the cards of a round, ``content`` the values of the
page, ``html`` fills the template and packs the charts of result sets. ``history`` has the results
of all rounds, ``history_html`` fills their template. ``site`` joins pages. Other pages share
``template``; ``templates/plot.js`` draws the large chart of a page from its own rows.
"""
