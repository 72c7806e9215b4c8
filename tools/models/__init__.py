"""Whole models: which of their modules are hot, what each is made into, how operators take their place, and whether that holds.

`loading` and `capture` run the user's model, `proof` runs it beside kernels: each in a process for that (`phases`), never in the agents'.
`runtime` is what a delivered package carries.
"""
