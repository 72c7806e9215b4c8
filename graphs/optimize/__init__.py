"""The loop: measure the baselines, then recall, plan, refine, review, learn until the budget or the search ends, then confirm."""
