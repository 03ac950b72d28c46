"""A report, and the results of all rounds, as pages of HTML that make no request.

``content`` has the values of the page of a check, ``html`` fills its template and packs the charts
of result sets. ``history`` is the page of all rounds. ``site`` joins pages. Other pages share
``template``; ``templates/plot.js`` draws the large chart of a page from its own rows.
"""
