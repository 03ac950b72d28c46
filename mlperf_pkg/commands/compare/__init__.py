"""Results of systems side by side: speed, throughput, price and energy, relative to a baseline.

``reading`` reads the results in the arguments, ``ratios`` compares them, ``formats`` shows them.
"""
