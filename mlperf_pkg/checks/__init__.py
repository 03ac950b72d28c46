"""What is asked of system descriptions and result sets: values in, findings out."""
