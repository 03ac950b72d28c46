"""Charts of a check as Vega-Lite: of each result set, and of the scores of each benchmark.

``sets`` holds the result sets and draws their runs and the RCP test, ``benchmarks`` all systems of
a benchmark, and the ratios of a comparison. ``chart`` has the pieces that all charts share,
``drawing`` draws all charts of a check, and makes SVG and PNG of them.
"""
