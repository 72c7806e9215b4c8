"""A run as one HTML file that needs nothing else: no script, no other file, no host.

`report.py` gathers and writes, `chart.py` draws, `page.j2` is the page. All that comes from a run is escaped by the template.
"""
