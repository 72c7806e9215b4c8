"""Precision policies by name: files of `data/policies/`, or of the user's own. Nothing here imports torch."""

from tools.policies.reading import load_policy, named_policies, policy_names, stated_policy

__all__ = ["load_policy", "named_policies", "policy_names", "stated_policy"]
