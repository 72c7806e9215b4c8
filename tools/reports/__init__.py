"""What whoever writes a kernel is told of an evaluation, in plain text: where it is wrong or fails, and where its time goes."""
