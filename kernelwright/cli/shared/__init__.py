"""What commands share: options, checks before work starts, waiting, and how they end."""
