"""Following logs while they are written: what is lost already, and when the run should end."""
