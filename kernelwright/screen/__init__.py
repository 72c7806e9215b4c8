"""What a person sees of a run: its facts as plain values, and the same as tables, trees and words; imported by commands, importing none.

Nothing here is computed that the run's store does not hold. Wherever a time is shown, it is shown whether it was measured or estimated.
"""
