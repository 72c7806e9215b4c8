"""What runs inside a sandbox with a candidate's code, bytes or kernels. Trusted code never imports it."""
