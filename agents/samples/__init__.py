"""A sample case, a softmax on an H200, and every prompt that models get for it: `kernelwright prompts` prints them, tests hold them."""
