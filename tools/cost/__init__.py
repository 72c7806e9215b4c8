"""The cost model: how long a launch, a region, a call or a whole schedule takes on a device, and which schedules it likes best.

Nothing is timed. Before anything is compiled, a template says what its launches do (`launches`) and `launch_time` how long that takes;
`region_settings` ranks the settings of a region, `rank_schedules` whole schedules. `estimate` models a call from recorded launches and
machine code.
"""
