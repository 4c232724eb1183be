"""Every command and every Python block of README.md and docs is run, and what it prints is what the page shows."""
