"""A user's reference at work for the agents: read and traced in processes of their own, side by side, each with a limit.

What a problem's file holds is the user's code. It runs in forks of a zygote that has torch and the tracer imported and sees no GPU; a
process that outlasts its limit is ended with all it started, and harms no other problem. Answers are text, and nothing is unpickled.
"""
