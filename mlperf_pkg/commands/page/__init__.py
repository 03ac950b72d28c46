"""A report as one page of HTML that makes no request.

``content`` collects the values of the page, ``excerpts`` reads the lines that findings are about,
``chart_data`` packs the charts, ``html`` fills the template. Other pages share ``template``.
"""
