"""What comes from elsewhere and goes elsewhere: seeds that ship, files in portable form, events of other machines.

`travel.py` says what is shared and `exchange.py` when; `board.py` is the collection on a Chroma server where machines meet.
"""
