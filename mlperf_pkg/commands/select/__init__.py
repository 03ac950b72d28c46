"""The runs to submit, selected from more runs than required."""
