"""The launch plan that is made of a candidate: recorded while the builder follows its host code on tensors without contents."""
