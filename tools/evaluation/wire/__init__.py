"""What two sides share: messages, memory layouts, records and constants."""
