"""What strangers may send: it gets findings, and takes nothing from anybody else."""
