"""Rows sent to experts: their steps parted into stages of grouped products."""
