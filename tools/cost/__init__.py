"""The cost model: how long a launch, a call or a whole schedule takes on a device, and which schedules it likes best. Nothing is timed."""
