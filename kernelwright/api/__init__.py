"""The public Python API, as `import kernelwright` gives it: runs (`optimize`, `resume`) and verdicts (`evaluate`, `verify`)."""
