"""The families of equations, one file each."""
