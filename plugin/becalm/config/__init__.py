"""What the operator configured."""
