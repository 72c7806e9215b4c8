"""Rules for what gives or takes elements at other positions: views, pieces, gathers, scatters, orders, interpolations."""
