"""A whole run as one value with a stable form: `records` says which, `exporting` and `importing` turn runs into it and back."""
