"""Programs of the maintainers, which are not part of the package."""
