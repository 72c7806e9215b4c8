"""Stage `partition`, and the actions on a schedule: fusion regions, their templates and parameters, and what stays with the library."""
