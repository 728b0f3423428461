"""The wiring: states, the loop, the tick, signals."""
